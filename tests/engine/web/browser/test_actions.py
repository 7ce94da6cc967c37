"""The dashboard's actions in a real browser: with a dialog, without JavaScript, and from the keyboard."""

from playwright.async_api import expect

from tests.engine.web.browser.test_panel import Dashboard, dashboard

__all__ = ["dashboard"]


async def paused(opened: Dashboard) -> tuple[bool | None, str]:
    switch = await opened.panel.work.switches.read("pause.job.pulse")
    assert switch is not None
    return switch.on, switch.reason


async def test_an_action_opens_as_a_dialog_from_the_keyboard_and_reports_its_result(dashboard: Dashboard) -> None:
    page = await dashboard.visit("/painel/tarefas/pulse")
    await page.keyboard.press("p")
    dialog = page.locator("dialog.sheet[open]")
    await expect(dialog).to_contain_text(
        "A pausa vai valer para: tarefa agendada pulse. Nenhum trabalho novo vai começar;"
    )
    await dialog.get_by_label("Motivo").fill("teste")
    await dialog.get_by_role("button", name="Pausar").click()
    await expect(page.get_by_role("status").filter(has_text="Pausa ativa: tarefa agendada pulse.")).to_be_visible()
    await expect(page.get_by_role("link", name="Retomar")).to_be_visible()
    assert await paused(dashboard) == (True, "teste")


async def test_an_action_is_a_page_without_a_script(dashboard: Dashboard) -> None:
    page = await dashboard.visit("/painel/tarefas/pulse", java_script_enabled=False)
    await page.get_by_role("link", name="Pausar").click()
    await page.get_by_label("Motivo").fill("sem script")
    await page.get_by_role("button", name="Pausar").click()
    await expect(page.get_by_text("Pausa ativa: tarefa agendada pulse.")).to_be_visible()
    assert await paused(dashboard) == (True, "sem script")


async def test_keys_go_to_a_page_and_through_the_rows(dashboard: Dashboard) -> None:
    page = await dashboard.visit("/painel")
    await page.keyboard.press("?")
    await expect(page.locator("#teclas")).to_be_visible()
    await page.keyboard.press("Escape")
    await page.keyboard.press("Control+k")
    await page.keyboard.type("freios")
    await page.keyboard.press("Enter")
    await expect(page).to_have_url(f"{dashboard.address}/painel/freios")
    await page.keyboard.press("j")
    await expect(page.locator(":focus")).to_have_text("Retomar")
