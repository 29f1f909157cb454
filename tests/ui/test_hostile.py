"""A body that wants to run, to call home or to confuse is shown as what it is: text."""

import json

from playwright.sync_api import Request, expect

from tests.page_stage import PageStage, card, chat, proof, sha256, system, user

SCRIPTS = """# <script>window.ran = "script"</script>

<img src=x onerror="window.ran = 'image'"> <svg onload="window.ran = 'svg'"></svg>

[innocent](javascript:window.ran='link') [tabbed](java\tscript:window.ran='tab')
[data](data:text/html,<script>1</script>)
![tracking](https://tracker.invalid/pixel.gif) ![script](javascript:window.ran='picture')
[site](https://site.invalid/a"onmouseover="window.ran='attribute') <https://site.invalid/>

| a | <b onclick="window.ran='cell'">b</b> |
|---|---|
| `<iframe src="javascript:window.ran='frame'">` | &lt;script&gt; |

```html
</code></pre><script>window.ran = "fence"</script>
```
</textarea></style></title><script>window.ran = "closing"</script>"""
TURNED = "user\u202egnp.exe \u2066abc\u2069 שלום עולם مرحبا بالعالم"
SIGNS = "👩‍👩‍👧‍👦 🇮🇹 e\u0301 \u0000 \u001b[31mred\u001b[0m \u0007 \ufeff \u200b \ud83d tail"
HUGE = "A line of a very long text, which goes on and on.\n" * 21_000
TOOL = {
    "type": "function",
    "function": {"name": "<script>ran</script>", "description": "<img src=x onerror=alert(1)>", "parameters": {}},
}


def test_a_hostile_body_is_harmless_wherever_it_is_shown(stage: PageStage) -> None:
    body = {
        "model": '"><script>window.ran="model"</script>',
        "messages": [
            {**system(SCRIPTS), "name": "<b>x</b>"},
            user(TURNED),
            {"role": "assistant", "content": SIGNS},
            user([{"type": "text", "text": HUGE}, {"type": "image_url", "image_url": {"url": "https://tracker.invalid/p.png"}}]),
            user([{"type": "image_url", "image_url": {"url": "data:image/svg+xml,<svg onload='window.ran=1'/>"}}]),
            user("And " + SCRIPTS),
        ],
        "tools": [TOOL],
        "__proto__": {"polluted": True},
        "metadata": {"constructor": "<script>", "toString": 1},
    }  # fmt: skip
    data = json.dumps(body).encode()
    exchange, answer = stage.desk.hold(data, session="%3Cscript%3Eran()%3C%2Fscript%3E")
    asked: list[str] = []
    with stage.look() as shown:
        page = shown.page

        def went(request: Request) -> None:
            asked.append(request.url)

        page.on("request", went)
        expect(page.get_by_role("row", name="held And")).to_be_visible()
        stage.open(page, exchange)
        expect(proof(page)).to_have_accessible_name(f"shown {sha256(data)}")
        for label in ("User 4", "User 3", "User 2", "User 1", "Assistant 1"):
            card(page, label).scroll_into_view_if_needed()
        system_card = page.get_by_role("article").first
        system_card.scroll_into_view_if_needed()
        expect(system_card.get_by_text("window.ran = 'image'")).to_be_visible()
        assert system_card.locator("a").evaluate_all("links => links.map(each => each.protocol)") == ["https:"] * 3
        expect(page.get_by_text("change its reading direction")).to_be_visible()
        card(page, "User 2").get_by_role("button", name="Show all").click()
        card(page, "User 1").get_by_role("button", name="Edit User 1").click()
        expect(page.get_by_role("textbox", name="Edit User 1")).to_be_focused()
        page.keyboard.press("Escape")
        for name in ("Wire", "Diff", "Reply", "Timeline", "Losses", "Headers"):
            page.get_by_role("tab", name=name).click()
            expect(page.get_by_role("tabpanel", name=name)).to_be_visible()
            if name == "Wire":
                expect(page.get_by_title(f"worked out in this page: {sha256(data)}")).to_be_visible()
        stage.desk.upstream.script = stage.desk.upstream.script[:1]
        page.get_by_role("button", name="Send").first.click()
        expect(proof(page)).to_contain_text("sent = shown")
        assert page.evaluate("[window.ran, ({}).polluted]") == [None, None]
    answer.result(30)
    assert stage.desk.sent[-1] == data
    assert all(url.startswith((stage.desk.server.url, "data:image/png")) for url in asked), asked


def test_a_hostile_reply_is_harmless(stage: PageStage) -> None:
    exchange, _answer = stage.client(chat(user("Say something.")))
    stage.person.act(exchange, "answer", {"reply": {"parts": [
        {"type": "text", "text": SCRIPTS + TURNED},
        {"type": "tool_call", "id": "<i>", "name": "<img src=x onerror=alert(1)>", "arguments": '{"a":"</script>"}'},
    ]}})  # fmt: skip
    with stage.visit(exchange, "reply") as page:
        expect(page.get_by_text("window.ran = 'image'")).to_be_visible()
        expect(page.get_by_role("heading", name="calls <img")).to_be_visible()
        page.get_by_role("radio", name="Raw frames").click()
        expect(page.get_by_label("Raw frames").last).to_contain_text("onerror")
        assert page.evaluate("window.ran") is None
