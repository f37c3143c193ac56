"""Strings that would do harm if a page took them for more than text, and a session that has them everywhere."""

from __future__ import annotations

from packages.cantle.tests.export.sample_sessions import Story, call

HIT = "window.hit=(window.hit||0)+1"
"""What each attack runs: the page that holds it must never have a `hit`."""

ATTACKS = (
    f"<script>{HIT}</script>",
    f"</script><script>{HIT}</script>",
    f"</style><script>{HIT}</script>",
    f"</title><script>{HIT}</script>",
    f"</textarea></pre></code></details><script>{HIT}</script>",
    f'"><img src=x onerror="{HIT}">',
    f"'><img src=x onerror='{HIT}'>",
    f"<svg/onload={HIT}>",
    f"<svg><script>{HIT}</script></svg>",
    f"<math><mtext><img src=x onerror={HIT}></mtext></math>",
    f"<iframe srcdoc='<script>parent.{HIT}</script>'></iframe>",
    f"<object data='javascript:{HIT}'></object><embed src='javascript:{HIT}'>",
    f'<body onload="{HIT}"><input autofocus onfocus="{HIT}">',
    f'<details open ontoggle="{HIT}">x</details>',
    f'<style>@import "http://127.0.0.1:9/a.css"; * {{ background: url("javascript:{HIT}") }}</style>',
    "<style>*{display:none!important}</style>",
    f'<meta http-equiv="refresh" content="0;url=javascript:{HIT}"><base href="http://127.0.0.1:9/">',
    '<link rel="stylesheet" href="http://127.0.0.1:9/a.css"><img src="http://127.0.0.1:9/a.png">',
    f'<form action="javascript:{HIT}"><button id=top name=attributes>x</button></form>',
    f"[a](javascript:{HIT}) [b](JaVaScRiPt:{HIT}) [c](&#106;avascript:{HIT}) [d](java&#10;script:{HIT})",
    f"[e](data:text/html,<script>{HIT}</script>) [f](vbscript:{HIT}) [g](file:///etc/passwd) [h](#w1-1)",
    f"<javascript:{HIT}> [i][j] ![k](http://127.0.0.1:9/k.png) ![l](javascript:{HIT})\n\n[j]: javascript:{HIT}",
    f"![m\"onerror=\"{HIT}](https://x.example/m.png 'n\" onerror=\"{HIT}')",
    f'[o](https://x.example/"onmouseover="{HIT}) [p](https://x.example/\' "q\\" onclick=\\"{HIT}")',
    f'```html"onclick="{HIT}\n</code></pre><script>{HIT}</script>\n```',
    f"```\n<script>{HIT}</script>",
    f"| <script>{HIT}</script> | b |\n|:-:|-:|\n| `</td><script>{HIT}</script>` | c |",
    f"<!--><script>{HIT}</script>--> <![CDATA[<script>{HIT}</script>]]> <?php {HIT} ?>",
    f'<noscript><p title="</noscript><img src=x onerror={HIT}>"></noscript>',
    f"\u202e<script>\u202c\u2066{HIT}\u2069</script>\u2028\u2029\x85",
    f"\x00<scr\x00ipt>{HIT}</scr\x00ipt>\x1b]8;;javascript:{HIT}\x07link\x1b]8;;\x07\x1b[2J\x9b31m\ud800\udfff\ufffe",
    f"&lt;script&gt;{HIT}&lt;/script&gt; &#60;script&#62;{HIT}&#60;/script&#62; &amp;lt;",
    f"+ADw-script+AD4-{HIT}+ADw-/script+AD4- <ſcript>{HIT}</ſcript> <ſvg onload={HIT}>",
    f'x" style="position:fixed;inset:0;z-index:9" onmouseover="{HIT}" y="',
    f"{{{{constructor.constructor('{HIT}')()}}}} ${{{HIT}}} <%= {HIT} %>",
)  # fmt: skip


def attack(text: str, number: int, story: Story) -> None:
    """Entries that hold `text` wherever an entry can hold a string."""
    bad = call("bash", number, command=text)
    bad["id"], bad["name"] = f"{text}{number}", text
    other = call("edit", number, path=text, edits=[{"oldText": text, "newText": text}], **{text: [text]})
    tools = [
        bad,
        other,
        call("write", number + 1, path=f"{text}.html", content=text),
        call("bash", number + 2, command=text, timeout=text),
        {**call("read", number + 3), "invalidArguments": text},
        {**call("read", number + 4, path=text), "namespace": text},
    ]
    story.add("model_change", provider=text, modelId=text)
    story.add("thinking_level_change", thinkingLevel=text)
    story.add("session_info", name=text)
    story.add("custom", customType=text, data={text: text})
    start = story.user(text)
    story.add("label", targetId=start, label=text)
    story.user(text, {"type": "image", "data": text, "mimeType": text}, {"type": text, text: text})
    story.answer(
        {"type": "thinking", "thinking": text},
        {"type": "thinking", "thinking": "", "redacted": True, "thinkingSignature": text},
        text,
        {"type": text, "text": text},
        *tools,
        model=text, provider=text, api=text, stopReason="error", errorMessage=text, responseId=text,
    )  # fmt: skip
    for tool in tools:
        story.result(tool, text, {"type": "image", "data": text, "mimeType": text}, {"type": text},
                     error=tool is other, details={"diff": f"+1 {text}\n-2 {text}\n{text}", text: text})  # fmt: skip
    story.message(role="toolResult", toolCallId=text, toolName=text, content=text, isError=True)
    story.message(
        role="bashExecution",
        command=text,
        output=text,
        exitCode=1,
        cancelled=False,
        truncated=True,
        fullOutputPath=text,
    )
    story.message(role="custom", customType=text, content=text, display=True, details={text: text})
    story.message(role="branchSummary", summary=text, fromId=text)
    story.message(role="compactionSummary", summary=text, tokensBefore=1)
    story.message(role="system", content=text, sections={text: text})
    story.message(role=text, content=text)
    story.add("custom_message", customType=text, content=text, display=False, details=text)
    story.add(
        "branch_summary", fromId=text, summary=text, details={"readFiles": [text], "modifiedFiles": [text]}
    )
    story.add(
        "compaction", summary=text, firstKeptEntryId=text, tokensBefore=7, details={"readFiles": [text]}
    )
    story.add("context_edit", targetId=start, replacement={"content": text})
    story.add("usage", kind=text, provider=text, model=text, note=text, usage={"input": 1})
    story.add(text, entry_id=f"{text}{number}", **{text: text})
    # A branch whose first line is the attack.
    here = story.leaf
    story.at(start)
    story.user(text)
    story.at(here)


def attacked() -> Story:
    """Every attack in every place."""
    story = Story()
    for index, text in enumerate(ATTACKS):
        attack(text, 100 * index, story)
    return story
