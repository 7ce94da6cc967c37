-- write reached: record the contact of this campaign with this doctor
INSERT INTO campaign_contact_history (cliente_id, campaign_id, sent_at) VALUES (:cliente_id, :campanha_id, :em) ON CONFLICT DO NOTHING;

-- write count_sent: count a sent message
UPDATE campanhas SET enviados = enviados + 1, updated_at = :now WHERE id = :campanha_id;

-- write delivered: mark the delivery to the doctor's phone; changes a row only the first time
UPDATE campaign_contact_history SET entregue_em = :now
WHERE entregue_em IS NULL AND (cliente_id, campaign_id) IN (
    SELECT cliente_id, attributed_campaign_id FROM interacoes
    WHERE provider_message_id = :message_id AND tipo = 'saida' AND delivery_status IN ('delivered', 'read'));

-- write count_delivered: count a delivery
UPDATE campanhas SET entregues = entregues + 1, updated_at = :now
WHERE id IN (SELECT attributed_campaign_id FROM interacoes WHERE provider_message_id = :message_id AND tipo = 'saida');

-- read last: the last campaign that reached the doctor within the time in which an answer counts
SELECT campaign_id FROM campaign_contact_history
WHERE cliente_id = :cliente_id AND sent_at > :since AND sent_at <= :until ORDER BY sent_at DESC LIMIT 1;

-- read wrote: the doctor's first inbound message since an instant
SELECT created_at FROM interacoes WHERE cliente_id = :cliente_id AND tipo = 'entrada' AND created_at >= :since ORDER BY created_at LIMIT 1;

-- write answered: mark the answer to a campaign; changes a row only the first time
UPDATE campaign_contact_history SET respondido_em = :em
WHERE cliente_id = :cliente_id AND campaign_id = :campanha_id AND respondido_em IS NULL;

-- write count_answered: count an answer
UPDATE campanhas SET respondidos = respondidos + 1, updated_at = :now WHERE id = :campanha_id;
