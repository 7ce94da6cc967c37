-- write reached: this doctor was reached by this campaign
INSERT INTO campaign_contact_history (cliente_id, campaign_id, sent_at) VALUES (:cliente_id, :campanha_id, :em) ON CONFLICT DO NOTHING;

-- write count_sent: one more left, not one more waits
UPDATE campanhas SET enviados = enviados + 1, updated_at = :now WHERE id = :campanha_id;

-- write delivered: the message of a campaign reached his phone; true once
UPDATE campaign_contact_history SET entregue_em = :now
WHERE entregue_em IS NULL AND (cliente_id, campaign_id) IN (
    SELECT cliente_id, attributed_campaign_id FROM interacoes
    WHERE provider_message_id = :message_id AND tipo = 'saida' AND delivery_status IN ('delivered', 'read'));

-- write count_delivered: one more
UPDATE campanhas SET entregues = entregues + 1, updated_at = :now
WHERE id IN (SELECT attributed_campaign_id FROM interacoes WHERE provider_message_id = :message_id AND tipo = 'saida');

-- read last: the last campaign that reached him in the time for which an answer counts
SELECT campaign_id FROM campaign_contact_history
WHERE cliente_id = :cliente_id AND sent_at > :since AND sent_at <= :until ORDER BY sent_at DESC LIMIT 1;

-- read wrote: when he first wrote after that
SELECT created_at FROM interacoes WHERE cliente_id = :cliente_id AND tipo = 'entrada' AND created_at >= :since ORDER BY created_at LIMIT 1;

-- write answered: he answered a campaign; true once
UPDATE campaign_contact_history SET respondido_em = :em
WHERE cliente_id = :cliente_id AND campaign_id = :campanha_id AND respondido_em IS NULL;

-- write count_answered: one more
UPDATE campanhas SET respondidos = respondidos + 1, updated_at = :now WHERE id = :campanha_id;
