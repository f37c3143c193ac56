"""Where a Messages request goes, what authorises it, and which headers it has."""

import pytest

from cantle_ai.auth.request_auth import RequestAuth
from cantle_ai.model import StreamOptions
from packages.ai.tests.apis.asking import refuse
from packages.ai.tests.apis.messages import KEY, ask, end, said, start

OK = [start(), said("ok"), end()]
BETA = "anthropic-beta"


async def headers(auth=None, **given):
    asked = await ask(OK, auth=auth, **given)
    assert asked.message.text == "ok", asked.message.error_message
    return asked.requests[-1].headers


@pytest.mark.parametrize("root", ["", "/", "/v1", "/v1/", "/anthropic", "/anthropic/v1"])
async def test_the_address_may_or_may_not_name_the_version(root):
    asked = await ask(OK, root=root)
    folder = "/anthropic" if "anthropic" in root else ""
    assert asked.requests[0].line == f"POST {folder}/v1/messages HTTP/1.1"


async def test_a_key_goes_out_in_the_apis_own_header():
    sent = await headers()
    assert (sent["x-api-key"], sent["anthropic-version"]) == (KEY, "2023-06-01")
    assert sent["content-type"] == "application/json"
    assert sent["user-agent"] == "cantle"
    assert "authorization" not in sent and BETA not in sent


async def test_a_bearer_token():
    sent = await headers(RequestAuth(api_key="token", kind="bearer"))
    assert sent["authorization"] == "Bearer token"
    assert "x-api-key" not in sent and BETA not in sent


async def test_the_token_of_a_login_says_that_it_is_one():
    sent = await headers(RequestAuth(api_key="token", kind="oauth"))
    assert sent["authorization"] == "Bearer token"
    assert sent[BETA] == "oauth-2025-04-20"
    assert "x-api-key" not in sent
    assert sent["user-agent"] == "cantle"


async def test_a_request_without_a_key():
    sent = await headers(RequestAuth())
    assert not {"x-api-key", "authorization"} & sent.keys()


async def test_configured_authorisation_takes_the_keys_place():
    sent = await headers(RequestAuth(api_key="k", headers={"Authorization": "Bearer configured"}))
    assert sent["authorization"] == "Bearer configured"
    assert "x-api-key" not in sent


async def test_configured_headers_go_over_the_apis_own_and_options_over_all():
    auth = RequestAuth(api_key=KEY, headers={"Anthropic-Version": "2030-01-01", "X-A": "1", "x-b": "1"})
    sent = await headers(auth, options=StreamOptions(headers={"X-B": "2", "User-Agent": "mine"}))
    assert (sent["anthropic-version"], sent["x-a"], sent["x-b"]) == ("2030-01-01", "1", "2")
    assert sent["user-agent"] == "mine"


async def test_betas_are_put_together():
    auth = RequestAuth(
        api_key="t", kind="oauth", headers={"Anthropic-Beta": "context-1m-2025-08-07, oauth-2025-04-20,"}
    )
    options = StreamOptions(thinking="low", headers={"anthropic-beta": "a-2026-01-01"})
    sent = await headers(auth, options=options, reasoning=True)
    assert sent[BETA].split(",") == [
        "oauth-2025-04-20",
        "interleaved-thinking-2025-05-14",
        "context-1m-2025-08-07",
        "a-2026-01-01",
    ]


@pytest.mark.parametrize(
    ("compat", "name"),
    [
        ({"sendSessionAffinityHeaders": True}, "x-session-affinity"),
        ({"sendSessionAffinityHeaders": True, "sessionAffinityFormat": "openrouter"}, "x-session-id"),
        ({"sendSessionAffinityHeaders": True, "sessionAffinityFormat": "openai"}, "x-session-affinity"),
        ({"sessionAffinityFormat": "openrouter"}, None),
        ({}, None),
    ],
)
async def test_send_session_affinity_headers_and_session_affinity_format(compat, name):
    sent = await headers(options=StreamOptions(session_id="s" * 64), compat=compat)
    assert {each for each in sent if "session" in each} == ({name} if name else set())
    assert name is None or sent[name] == "s" * 64
    uncached = StreamOptions(session_id="s", cache_retention="none")
    assert not {each for each in await headers(options=uncached, compat=compat) if "session" in each}


async def test_a_long_session_id_is_bounded():
    compat = {"sendSessionAffinityHeaders": True}
    sent = await headers(options=StreamOptions(session_id="s" * 65), compat=compat)
    assert len(sent["x-session-affinity"]) == 64


@pytest.mark.parametrize("kind", ["key", "bearer", "oauth"])
async def test_no_key_in_what_is_said_about_a_refusal(kind):
    body = (
        b'{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key '
        + KEY.encode()
        + b'"}}'
    )
    asked = await ask(
        refuse("401 Unauthorized", body, "content-type: application/json"),
        auth=RequestAuth(api_key=KEY, kind=kind),
    )
    assert asked.details["status"] == 401
    assert KEY not in str(asked.message.to_json())


@pytest.mark.parametrize("name", ["cf-aig-authorization", "X-Portkey-API-Key", "x-gateway-token", "Cookie"])
async def test_no_key_of_a_gateway_in_what_is_said_about_a_refusal(name):
    auth = RequestAuth(headers={name: f"Bearer {KEY}"})
    asked = await ask(
        refuse("401 Unauthorized", b'{"error":"no such key: ' + KEY.encode() + b'"}'), auth=auth
    )
    assert asked.message.error_message == "401 no such key: …"


@pytest.mark.parametrize("before", [1990, 150, 0])
@pytest.mark.parametrize("status", ["401 Unauthorized", "200 OK"])
@pytest.mark.parametrize("form", ['{"error": {"message": "%s"}}', "no JSON: %s"])
async def test_no_beginning_of_a_key_where_a_text_was_cut(before, status, form):
    body = (form % ("x" * before + KEY + "y" * 2000)).encode()
    asked = await ask(refuse(status, body, "content-type: application/json"))
    assert asked.message.stop_reason == "error"
    assert KEY[:8] not in str(asked.message.to_json())


async def test_no_key_in_the_code_of_a_refusal():
    body = b'{"error":{"message":"no","code":"' + KEY.encode() + b'"}}'
    asked = await ask(refuse("401 Unauthorized", body))
    assert (asked.message.error_message, asked.details["code"]) == ("401 no", "…")


async def test_a_wrong_quirk_is_an_error_before_anything_is_sent():
    asked = await ask(OK, compat={"supportsTemperature": 3})
    assert asked.message.stop_reason == "error"
    assert "supportsTemperature" in (asked.message.error_message or "")
    assert not asked.requests
