"""The document about attacks names only tests that exist, and every HTTP client follows the rules for outgoing
requests.
"""

import ast
import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
# Folders to check. The simulators of the development mode have their own certificates and connect only to this machine.
FOLDERS = ("src", "app")


def test_every_attack_names_an_existing_test() -> None:
    document = (ROOT / "docs" / "attacks.md").read_text(encoding="utf-8")
    sources = "\n".join(file.read_text(encoding="utf-8") for file in (ROOT / "tests").rglob("test_*.py"))
    existing = set(re.findall(r"def (test_\w+)\(", sources))
    named = set(re.findall(r"`(test_\w+)`", document))
    assert len(named) > 50
    assert named <= existing, named - existing
    for file in re.findall(r"`(tests/[\w/.]+)`", document):
        assert (ROOT / file).is_file(), file


def test_http_clients_follow_no_redirect_and_no_proxy_of_the_environment() -> None:
    """HTTP clients of the product follow no redirects, because a redirect would let the called service choose an
    address inside our network.
    """
    found = 0
    for file in (file for folder in FOLDERS for file in (ROOT / folder).rglob("*.py")):
        source = file.read_text(encoding="utf-8")
        for node in ast.walk(ast.parse(source)) if "Client(" in source else ():
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith(("AsyncClient", "httpx2.Client")):
                options = {each.arg: ast.unparse(each.value) for each in node.keywords}
                assert options.get("trust_env") == "False", file
                assert options.get("follow_redirects", "False") == "False", file
                found += 1
    assert found >= 3


def test_no_document_puts_a_secret_on_a_command_line() -> None:
    """No document shows a command with a secret in its arguments, because other users of a machine can read the
    arguments of its processes.
    """
    secret = re.compile(
        r"Bearer \$|\s(?:-e|--env|--setenv|-p)[ =]\w*(?:TOKEN|KEY|PASSWORD|SECRET)="
        r"|redis-cli [^\n]*-a |--password[ =]|\scurl [^\n]*-u "
    )
    for file in [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "deploy").rglob("*.*")]:
        assert not secret.search(file.read_text(encoding="utf-8")), file
