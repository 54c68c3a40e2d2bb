"""Who comes in: the token of the terminal once, the cookie that it gives, and the token of programs."""

from __future__ import annotations

from pathlib import Path

import httpx
import pytest
from tests.support.guarded import TOKEN, Served, guarded

from portico.errors import ConfigurationError
from portico_serve._guard.sessions import require_token


async def test_the_token_begins_a_session_and_the_address_is_without_it(served: Served) -> None:
    async with served.client() as client:
        response = await served.log_in(client)

        assert response.headers["location"] == "/"
        cookie = response.headers["set-cookie"].lower()
        assert all(each in cookie for each in ("httponly", "samesite=strict", "path=/"))
        assert served.announced[0] not in str(response.headers)
        assert (await client.get("/api/runs")).status_code == 200


async def test_a_token_is_good_once_and_the_next_one_is_announced(served: Served) -> None:
    token = served.announced[0]
    async with served.client() as first, served.client() as second, served.client() as third:
        await served.log_in(first)
        again = await second.get("/", params={"token": token})
        await served.log_in(third)

    assert again.status_code == 403
    assert "used already" in again.text
    assert "set-cookie" not in again.headers
    assert len(set(served.announced)) == 3


async def test_the_old_address_leads_a_browser_with_a_session_to_the_page(served: Served) -> None:
    async with served.browser() as client:
        response = await client.get("/", params={"token": served.announced[0]})

    assert (response.status_code, response.headers["location"]) == (303, "/")


@pytest.mark.parametrize("token", ["", "x", "ä€", "x" * 5_000, "\x00"])
async def test_another_token_is_refused(served: Served, token: str) -> None:
    async with served.client() as client:
        response = await client.get("/", params={"token": token})

    assert response.status_code == 403
    assert "set-cookie" not in response.headers


@pytest.mark.parametrize("path", ["/", "/runs", "/api/runs", "/v1/models", "/nothing"])
async def test_without_a_session_nothing_is_shown(served: Served, path: str) -> None:
    async with served.client() as client:
        response = await client.get(path)

    assert response.status_code == 401


async def test_a_refusal_is_a_page_that_has_its_style_without_a_session(served: Served) -> None:
    async with served.client() as client:
        page = await client.get("/runs")
        style = await client.get("/static/style.css")

    assert "/static/style.css" in page.text
    assert "portico serve" in page.text
    assert style.status_code == 200


async def test_a_cookie_of_another_server_is_worth_nothing(served: Served, tmp_path: Path) -> None:
    async with served.browser() as client:
        cookies = dict(client.cookies)
    async with guarded(tmp_path) as other, other.client(**other.origin) as client:
        for name, value in cookies.items():
            client.cookies.set(name, value, "127.0.0.1")
            client.cookies.set(f"portico-{other.port}", value, "127.0.0.1")
        assert (await client.get("/api/runs")).status_code == 401
        assert (await client.post("/api/runs", json={"goal": "x"})).status_code == 401


async def test_a_look_at_the_address_uses_no_token_up(served: Served) -> None:
    async with served.client() as client:
        await client.head("/", params={"token": served.announced[0]})
        await served.log_in(client)

    assert len(served.announced) == 2


async def test_a_picture_in_another_page_uses_no_token_up(served: Served) -> None:
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
    async with served.client() as client:
        response = await client.get("/", params={"token": served.announced[0]}, headers=headers)

    assert response.status_code == 403
    assert len(served.announced) == 1


async def test_a_link_in_another_page_begins_a_session_with_a_page_of_ours(served: Served) -> None:
    headers = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate"}
    async with served.client() as client:
        response = await client.get("/", params={"token": served.announced[0]}, headers=headers)

    assert response.status_code == 200
    assert response.headers["refresh"].endswith("url=/")
    assert "set-cookie" in response.headers


async def test_programs_use_their_token_any_number_of_times(served: Served) -> None:
    async with served.program() as client:
        statuses = [(await client.get("/api/runs")).status_code for _ in range(3)]
        entered = await client.get("/", params={"token": TOKEN})

    assert statuses == [200, 200, 200]
    assert entered.status_code == 303


@pytest.mark.parametrize(
    "header", ["Bearer", f"Bearer {TOKEN}x", f"Basic {TOKEN}", TOKEN, "Bearer null", f"Bearer {TOKEN[:-1]}"]
)
async def test_a_wrong_token_of_programs_is_refused(served: Served, header: str) -> None:
    async with served.client(authorization=header) as client:
        whole, models = await client.get("/api/runs"), await client.get("/v1/models")

    assert whole.status_code == models.status_code == 401
    assert TOKEN not in whole.text + models.text
    assert models.json()["error"]["type"] == "authentication_error"


async def test_the_token_of_programs_does_not_open_pages(served: Served) -> None:
    async with served.program() as client:
        assert (await client.get("/runs")).status_code == 401


async def test_the_one_time_token_is_no_token_of_programs(served: Served) -> None:
    async with served.client(authorization=f"Bearer {served.announced[0]}") as client:
        assert (await client.get("/api/runs")).status_code == 401


async def test_where_no_token_of_programs_is_set_none_is_right(folder: Path) -> None:
    async with guarded(folder, token=None) as served:
        for token in ("None", "null", TOKEN):
            async with served.client(authorization=f"Bearer {token}") as client:
                refused = await client.get("/api/runs")
            assert refused.status_code == 401
            assert "PORTICO_SERVE_TOKEN" in refused.text


async def test_many_wrong_tokens_have_to_wait_and_sessions_do_not(served: Served) -> None:
    async with served.browser() as browser, served.client() as other:
        guesses = [await other.get("/", params={"token": f"guess {number}"}) for number in range(30)]

        assert guesses[0].status_code == 403
        assert guesses[-1].status_code == 429
        assert int(guesses[-1].headers["retry-after"]) >= 1
        assert (await other.get("/", params={"token": TOKEN})).status_code == 429
        assert (await browser.get("/api/runs")).status_code == 200
        await served.log_in(other)


@pytest.mark.parametrize("token", ["short", "with spaces in between", "ä" * 20])
def test_a_token_that_is_short_or_odd_is_a_mistake(token: str) -> None:
    with pytest.raises(ConfigurationError, match="16 or more"):
        require_token(token)


async def test_no_answer_has_a_token_in_it(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    token = served.announced[0]
    answers: list[httpx.Response] = []
    async with served.client() as client:
        answers += [await client.get("/", params={"token": token}, headers={"host": "evil.example"})]
        answers += [await client.get("/nothing", params={"token": token})]
        await served.log_in(client)
        answers += [await client.get("/nothing", params={"token": token})]
    async with served.client() as client:
        answers += [await client.get("/", params={"token": token})]

    assert [each.status_code for each in answers] == [421, 401, 404, 403]
    for each in answers:
        assert token not in each.text + str(each.headers)
        assert each.headers["referrer-policy"] == "no-referrer"
    ours = [record for record in caplog.records if not record.name.startswith("http")]
    assert token not in "".join(record.getMessage() for record in ours)


async def test_wrong_tokens_in_frames_of_another_site_do_not_lock_out_programs(served: Served) -> None:
    frame = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "navigate", "sec-fetch-dest": "iframe"}
    async with served.client(**frame) as page, served.program() as program:
        answers = [(await page.get("/", params={"token": "wrong"})).status_code for _ in range(30)]

        assert answers[-1] == 429
        assert (await program.get("/api/runs")).status_code == 200
