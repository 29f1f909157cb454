"""An answer that wants to run, to call home or to confuse is shown as what it is; maths, tables and code as theirs."""

from pathlib import Path

from playwright.sync_api import Request, expect

from tests.browser import has_copied
from tests.chat.api.http_stage import ChatDesk
from tests.chat_page import chatting
from tests.ui.test_hostile import SCRIPTS, TURNED

RICH = """The roots are $x = \\frac{-b \\pm \\sqrt{b^2 - 4ac}}{2a}$, and

$$\\int_0^1 x^2\\,dx = \\frac{1}{3}$$

| city | people |
|:-----|-------:|
| Rome | 2,750,000 |
| Oslo | 709,000 |

```python
def area(r: float) -> float:
    return 3.14 * r * r
```

- [x] done
- a [link](https://site.invalid/page)
"""
FORMULA = (
    "$\\href{javascript:window.ran='maths'}{x}$ $\\includegraphics{https://tracker.invalid/f.png}$ $\\unicode{60}$"
)


def test_a_hostile_chat_is_harmless(talk: ChatDesk, tmp_path: Path) -> None:
    topic = talk.done("POST", "topics", {"name": "<img src=x onerror=\"window.ran='topic'\">"})["id"]
    asked: list[str] = []
    with chatting(talk.server) as chat:

        def went(request: Request) -> None:
            asked.append(request.url)

        chat.page.on("request", went)
        talk.answers(*(SCRIPTS[at : at + 7] for at in range(0, len(SCRIPTS), 7)), "\n\n", TURNED, "\n\n", FORMULA)
        chat.question.fill(SCRIPTS)
        chat.press("Enter")
        pair = chat.answered("# <script>")
        expect(pair.get_by_text("window.ran = 'image'").first).to_be_visible()
        links = pair.locator(".pair-answer .answer-blocks a")
        assert set(links.evaluate_all("links => links.map(each => each.protocol)")) == {"https:"}
        assert set(links.evaluate_all("links => links.map(each => each.rel)")) == {"noopener noreferrer nofollow"}
        assert pair.locator(".answer-blocks :is(img, iframe, script, svg[onload], style, object, form)").count() == 0
        talk.done("POST", "mark", {"ids": [talk.rows()[0]["id"]], "topic": topic})
        expect(pair).to_contain_text("<img src=x onerror=")
        chat.press("Escape", "w")
        expect(chat.dialog("Edit the texts")).to_be_visible()
        chat.close()
        chat.press("t")
        expect(chat.page.get_by_role("dialog")).to_contain_text("<img src=x")
        chat.close()
        chat.apply("c'<script>'")
        chat.press("Control+d", "Control+u")
        chat.write("c'<script>' :delete --dry-run")
        chat.press("Enter")
        expect(chat.dialog(":delete").get_by_role("list")).to_contain_text("<script>")
        chat.close()
        chat.press("p")
        panel = chat.page.get_by_role("region", name="Preview of the next send")
        expect(panel).to_contain_text("stands for your question until you write one")
        chat.press("Control+i")
        chat.write("And?")
        expect(panel).to_contain_text("onerror")
        chat.keep(tmp_path, "chat-hostile")
        chat.fits()
        assert chat.page.evaluate("window.ran") is None
    assert all(url.startswith(talk.server.url) for url in asked), asked


def test_maths_tables_and_code_are_drawn_and_can_be_copied(talk: ChatDesk, tmp_path: Path) -> None:
    talk.answers(*(RICH[at : at + 11] for at in range(0, len(RICH), 11)))
    with chatting(talk.server) as chat:
        pair = chat.ask("Show me everything.")
        expect(pair.locator("math")).to_have_count(2)
        expect(pair.get_by_role("table").get_by_role("cell", name="2,750,000")).to_be_visible()
        expect(pair.get_by_role("link", name="link")).to_have_attribute("href", "https://site.invalid/page")
        chat.press("Escape", "c", "1")
        expect(chat.toast).to_contain_text("Code block 1 copied.")
        copied = "def area(r: float) -> float:\n    return 3.14 * r * r"
        has_copied(chat.page, copied)
        chat.page.evaluate("navigator.clipboard.writeText('')")
        pair.locator("pre").hover()
        pair.locator("pre").locator("xpath=..").get_by_role("button", name="Copy").click()
        has_copied(chat.page, copied)
        chat.press("y", "1")
        expect(chat.toast.last).to_contain_text("Formula 1 copied.")
        has_copied(chat.page, "x = \\frac{-b \\pm \\sqrt{b^2 - 4ac}}{2a}")
        chat.press("v", "1")
        expect(chat.dialog("Code block 1")).to_contain_text("def area")
        chat.close()
        chat.press("l")
        expect(pair.get_by_role("link", name="link")).to_be_focused()
        chat.keep(tmp_path, "chat-rich")
