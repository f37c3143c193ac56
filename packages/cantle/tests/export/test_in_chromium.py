"""The exported page as a browser shows it: both colour schemes, a phone, branches, hostile text, many entries."""

import re

import pytest

from packages.cantle.tests.export.attacks import attacked
from packages.cantle.tests.export.browser import visited
from packages.cantle.tests.export.sample_sessions import long_session, tidepool
from tests.support.extras import needs
from tests.support.samples import samples

pytestmark = needs("browser")

MANY = samples(10_000, 2_000)
OVERFLOW = "document.documentElement.scrollWidth - window.innerWidth"
BACKGROUND = "getComputedStyle(document.body).backgroundColor"
OTHER_WAY = (
    "[...document.querySelectorAll('.ways a:not([aria-current])')].find(link => link.checkVisibility())"
)
TOP = "selector => document.querySelector(selector).getBoundingClientRect().top"


def many():
    return long_session(MANY)


def brightness(colour: str) -> float:
    return sum(map(float, re.findall(r"[\d.]+", colour)[:3])) / 3


@pytest.mark.parametrize("phone", [False, True], ids=["wide", "phone"])
@pytest.mark.parametrize("make", [tidepool, many], ids=["tidepool", "many"])
def test_both_colour_schemes_and_a_phone(make, phone, browser, exported, tmp_path):
    page = exported(make.__name__, make)
    shots = {}
    for scheme in ("light", "dark"):
        with visited(browser, page, phone=phone, color_scheme=scheme) as visit:
            shots[scheme] = visit.page.screenshot(path=tmp_path / f"{scheme}.png")
            is_dark = brightness(visit.page.evaluate(BACKGROUND)) < 60
            is_light = brightness(visit.page.evaluate(BACKGROUND)) > 230
            assert (is_dark, is_light) == (scheme == "dark", scheme == "light")
            assert visit.page.evaluate(OVERFLOW) <= 0, "the page is wider than the screen"
            assert visit.said == []
            assert visit.loaded() == [page.as_uri()]
    assert min(map(len, shots.values())) > 10_000, "an empty page"
    assert shots["light"] != shots["dark"]


@pytest.mark.parametrize("scripts", [True, False], ids=["scripts", "no scripts"])
def test_a_branch_is_chosen_where_it_leaves(scripts, browser, exported):
    page = exported("tidepool", tidepool)
    with visited(browser, page, java_script_enabled=scripts) as visit:
        assert visit.shown("text=Summary of another branch")
        assert visit.shown("text=High water is now at")
        assert not visit.shown("article >> text=Try the second one.")
        visit.page.locator(".ways a:visible", has_text="Try the second one.").first.click()
        assert visit.shown("article >> text=Try the second one.")
        assert not visit.shown("text=High water is now at")
        assert visit.shown("text=degrees an hour"), "what both branches have stays"
        assert visit.shown("footer.end")
        visit.page.locator(".ways a:visible", has_text="Then the first one").first.click()
        assert visit.shown("text=High water is now at")
        assert not visit.shown("article >> text=Try the second one.")
        visit.page.go_back()
        assert visit.shown("article >> text=Try the second one.")
        assert visit.said == []


def test_the_tree_leads_into_a_branch(browser, exported):
    with visited(browser, exported("tidepool", tidepool)) as visit:
        visit.page.locator(".tree a", has_text="Could we also have currents?").click()
        assert visit.shown("article >> text=Could we also have currents?")
        assert not visit.shown("article >> text=Write the commit message.")
        visit.page.locator(".tree a", has_text="Write the commit message.").click()
        assert visit.shown("article >> text=Write the commit message.")
        assert not visit.shown("article >> text=Could we also have currents?")


def test_an_address_opens_its_branch_and_its_fold(browser, exported):
    page = exported("tidepool", tidepool)
    failed = next(e for e in tidepool().entries if "FAIL  units" in str(e.to_json()))
    with visited(browser, page, place=f"#e-{failed.id}") as visit:
        assert visit.shown("text=AssertionError: expected 0.0805")
        assert 0 <= visit.page.evaluate(TOP, f"#e-{failed.id}") < 900


def test_tools_thinking_and_summaries_are_folded(browser, exported):
    with visited(browser, exported("tidepool", tidepool)) as visit:
        named = visit.page.locator(".tool-name", has_text="edit")
        edit = visit.page.locator("details.tool:visible").filter(has=named).first
        assert not visit.shown("pre.diff .add")
        edit.locator("summary").click()
        assert visit.shown("pre.diff .add") and visit.shown("pre.diff .del")
        colours = {
            visit.page.evaluate(
                "s => getComputedStyle(document.querySelector(s)).backgroundColor", f"pre.diff .{kind}"
            )
            for kind in ("add", "del")
        }
        assert len(colours) == 2
        assert not visit.shown("text=I should look at where the angle is formed before I guess.")
        visit.page.locator("details.thinking summary").first.click()
        assert visit.shown("text=I should look at where the angle is formed before I guess.")


def test_what_is_shown_can_be_chosen(browser, exported):
    with visited(browser, exported("tidepool", tidepool), color_scheme="light") as visit:
        choose = visit.page.locator(".view label")
        assert visit.shown(".thinking") and visit.shown(".tool") and not visit.shown(".figures")
        for words in ("Thinking", "Tools", "Figures"):
            choose.filter(has_text=words).click()
        assert not visit.shown(".thinking") and not visit.shown(".tool") and visit.shown(".figures")
        choose.filter(has_text="Tools").click()
        choose.filter(has_text="Unfold all").click()
        assert visit.shown("pre.diff .add")
        choose.filter(has_text="Dark").click()
        assert brightness(visit.page.evaluate(BACKGROUND)) < 60


def test_a_phone_opens_the_tree(browser, exported):
    with visited(browser, exported("tidepool", tidepool), phone=True, has_touch=True) as visit:
        assert not visit.shown(".tree")
        visit.page.locator("label.menu").tap()
        assert visit.shown(".tree")
        visit.page.locator(".tree a", has_text="Could we also have currents?").tap()
        assert visit.shown("article >> text=Could we also have currents?")
        assert visit.page.evaluate(OVERFLOW) <= 0


def test_images_are_drawn(browser, exported):
    with visited(browser, exported("tidepool", tidepool)) as visit:
        visit.page.locator(".view label", has_text="Unfold all").click()
        picture = visit.page.locator("figure img").first
        picture.scroll_into_view_if_needed()
        visit.page.wait_for_function("document.querySelector('figure img').complete")
        assert picture.evaluate("image => [image.naturalWidth, image.naturalHeight]") == [420, 180]


def test_many_entries_are_reached(browser, exported):
    with visited(browser, exported("many", many)) as visit:
        links = visit.page.locator(".tree a").evaluate_all("all => all.map(a => a.getAttribute('href'))")
        assert len(links) > MANY // 20
        for place in (links[len(links) // 2], links[-1], links[0]):
            visit.page.evaluate("place => { location.hash = place }", place)
            visit.page.wait_for_function(
                "place => { const top = document.querySelector(place).getBoundingClientRect().top;"
                " return top > -100 && top < innerHeight }",
                arg=place,
            )
        visit.page.evaluate_handle(OTHER_WAY).as_element().click()
        assert re.fullmatch(r"#[wf][\d-]+", visit.page.evaluate("location.hash"))
        assert visit.said == []


@pytest.mark.parametrize("policy", [True, False], ids=["policy", "no policy"])
def test_hostile_text_runs_nothing(policy, browser, exported):
    """Without its policy, too: the page does not live by that alone."""
    page = exported("attacked", attacked)
    with visited(browser, page, bypass_csp=not policy) as visit:
        visit.page.evaluate("document.querySelectorAll('details').forEach(fold => { fold.open = true })")
        for link in visit.page.locator(".ways a:visible").all()[:5]:
            link.hover()
        visit.page.evaluate("new Promise(done => requestAnimationFrame(() => requestAnimationFrame(done)))")
        assert visit.page.evaluate("window.hit") is None
        assert visit.said == []
        assert visit.loaded() == [page.as_uri()]
        assert visit.page.evaluate("document.scripts.length + document.forms.length") == 1, (
            "the form of the view"
        )
        addresses = visit.page.evaluate("[...document.links].map(link => link.protocol)")
        assert set(addresses) <= {"file:", "http:", "https:", "mailto:"}
        outside = (
            "[...document.links].filter(a => !a.getAttribute('href').startsWith('#')).map(a => a.protocol)"
        )
        assert set(visit.page.evaluate(outside)) <= {"http:", "https:", "mailto:"}
        assert visit.page.evaluate(OVERFLOW) <= 0
