"""Schemas of the request bodies of the Evolution API."""

from simulador.evolution.schema import Schema

EVENTS = (
    "APPLICATION_STARTUP",
    "CALL",
    "CHATS_DELETE",
    "CHATS_SET",
    "CHATS_UPDATE",
    "CHATS_UPSERT",
    "CONNECTION_UPDATE",
    "CONTACTS_SET",
    "CONTACTS_UPDATE",
    "CONTACTS_UPSERT",
    "GROUPS_UPSERT",
    "GROUP_PARTICIPANTS_UPDATE",
    "GROUP_UPDATE",
    "INSTANCE_CREATE",
    "INSTANCE_DELETE",
    "LABELS_ASSOCIATION",
    "LABELS_EDIT",
    "LOGOUT_INSTANCE",
    "MESSAGES_DELETE",
    "MESSAGES_EDITED",
    "MESSAGES_SET",
    "MESSAGES_UPDATE",
    "MESSAGES_UPSERT",
    "PRESENCE_UPDATE",
    "QRCODE_UPDATED",
    "REMOVE_INSTANCE",
    "SEND_MESSAGE",
    "SEND_MESSAGE_UPDATE",
    "STATUS_INSTANCE",
    "TYPEBOT_CHANGE_STATUS",
    "TYPEBOT_START",
)

STRING, BOOLEAN, OBJECT = Schema("string"), Schema("boolean"), Schema("object")
MESSAGE_KEY = {"id": STRING, "remoteJid": STRING, "fromMe": BOOLEAN}
MENTION = Schema("string", description='"mentioned" must be an array of numeric strings')
SEND_TEXT = Schema(
    "object",
    properties={
        "number": Schema("string", description="Invalid format"),
        "text": STRING,
        "linkPreview": BOOLEAN,
        "delay": Schema("integer", description="Enter a value in milliseconds"),
        "quoted": Schema(
            "object",
            properties={"key": Schema("object", properties=MESSAGE_KEY, required=("id",)), "message": OBJECT},
        ),
        "mentionsEveryOne": BOOLEAN,
        "mentioned": Schema("array", at_least=1, unique=True, items=MENTION),
    },
    required=("number", "text"),
)
NUMBERS = Schema(
    "object",
    properties={
        "numbers": Schema(
            "array",
            at_least=1,
            unique=True,
            items=Schema("string", description='"numbers" must be an array of numeric strings'),
        )
    },
    required=("numbers",),
)
FIND_MESSAGES = Schema(
    "object",
    properties={
        "where": Schema("object", properties={"key": Schema("object", properties=MESSAGE_KEY)}),
        "page": Schema("integer"),
        "offset": Schema("integer"),
    },
)
WEBHOOK = {
    "enabled": BOOLEAN,
    "url": STRING,
    "headers": OBJECT,
    "byEvents": BOOLEAN,
    "base64": BOOLEAN,
    "events": Schema("array", items=Schema("string", one_of=EVENTS)),
}
SET_WEBHOOK = Schema(
    "object",
    properties={"webhook": Schema("object", properties=WEBHOOK, required=("enabled", "url"))},
    required=("webhook",),
)
SWITCHES = ("rejectCall", "groupsIgnore", "alwaysOnline", "readMessages", "readStatus", "syncFullHistory")
CREATE = Schema(
    "object",
    properties={
        "instanceName": STRING,
        "token": STRING,
        "number": STRING,
        "qrcode": BOOLEAN,
        "msgCall": STRING,
        "webhook": Schema("object", properties=WEBHOOK),
        **dict.fromkeys(SWITCHES, BOOLEAN),
    },
    required=("instanceName",),
)
