"""Reads pages of the generated site with Python's own HTML parser, by the descriptions of docs/contributing/LIVERC.md, into the
form of /truth: an independent check that the pages say what the truth says. It shares nothing with the site's
generator or with the parsers of the server, and forgives nothing: a tag that is not closed is an error."""
import html.parser
import re

VOID = {"meta", "link", "br", "img"}
MONTHS = "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split()


class Node:
    def __init__(self, tag, attributes):
        self.tag, self.attributes, self.children = tag, attributes, []

    @property
    def classes(self):
        return (self.attributes.get("class") or "").split()

    def text(self, without=()):
        """Its text with single spaces, without that of the nodes in `without`."""
        parts = [child if isinstance(child, str) else child.text(without) if child not in without else ""
                 for child in self.children]
        return " ".join("".join(parts).split())

    def all(self, tag=None, name=None):
        """Its descendants with this tag and class, in the order of the page."""
        for child in self.children:
            if isinstance(child, Node):
                if (tag is None or child.tag == tag) and (name is None or name in child.classes):
                    yield child
                yield from child.all(tag, name)

    def first(self, tag=None, name=None):
        return next(self.all(tag, name), None)


class Parser(html.parser.HTMLParser):
    def __init__(self):
        super().__init__()
        self.open = [Node("", {})]

    def handle_starttag(self, tag, attrs):
        node = Node(tag, dict(attrs))
        assert len(node.attributes) == len(attrs), f"<{tag}> has an attribute twice"
        self.open[-1].children.append(node)
        if tag not in VOID:
            self.open.append(node)

    def handle_startendtag(self, tag, attrs):
        assert tag in VOID, f"<{tag} />"
        self.open[-1].children.append(Node(tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open[-1].tag == tag, f"</{tag}> closes <{self.open[-1].tag}>"
        self.open.pop()

    def handle_data(self, data):
        self.open[-1].children.append(data)


def parse(page):
    parser = Parser()
    parser.feed(page)
    parser.close()
    assert len(parser.open) == 1, f"<{parser.open[-1].tag}> is not closed"
    return parser.open[0]


# ---- texts ----

def day(text):
    month, number, year = re.fullmatch(r"(\w{3}) (\d+), (\d{4})", text).groups()
    return f"{year}-{MONTHS.index(month) + 1:02}-{int(number):02}"


def completed(text):
    match = re.fullmatch(r"(.*?)(?: at (\d+)(?::(\d\d))?([ap])m)?", text)
    if match[2] is None:
        return day(match[1])
    return f"{day(match[1])} {int(match[2]) % 12 + (12 if match[4] == 'p' else 0):02}:{match[3] or '00'}"


def ms(text):
    """A time of up to three parts, with up to three decimals; None for none."""
    if not text:
        return None
    match = re.fullmatch(r"(?:(?:(\d+):)?(\d+):)?(\d+)(?:\.(\d{1,3}))?", text)
    hours, minutes, seconds = (int(part or 0) for part in match.groups()[:3])
    return ((hours * 60 + minutes) * 60 + seconds) * 1000 + int((match[4] or "").ljust(3, "0"))


def hundredths(text):
    return int(text.rstrip("%").replace(".", "")) if text else None


def link_id(link, page):
    """The id of a link to such a page; None: it leads elsewhere."""
    match = re.fullmatch(r"/results/\?p=(\w+)&id=(\d+)", link.attributes["href"].replace("%5F", "_"))
    return int(match[2]) if match and match[1] == page else None


# ---- pages ----

def tracks(page):
    return [{"slug": re.fullmatch(r"//([\w-]+)\.liverc\.com/", row.first("a").attributes["href"])[1],
             "name": row.first("strong").text()}
            for row in parse(page).first("table", "track_list").all("tr", "clickable-row")]


def events(page):
    table = next(t for t in parse(page).all("table") if t.attributes.get("id") == "events")
    result = []
    for row in table.first("tbody").all("tr"):
        name, date, n_entries, n_drivers = row.all("td")
        hidden = date.first("span", "hidden")
        assert day(date.text([hidden])) == hidden.text()[:10]
        result.append({"id": link_id(name.first("a"), "view_event"), "name": name.text(), "date": hidden.text()[:10],
                       "n_entries": int(n_entries.text()), "n_drivers": int(n_drivers.text())})
    return result


def words(text):
    return {word for word in re.findall(r"[a-z0-9]+", text.lower()) if len(word) >= 2}


def event_name(h1, h3):
    if not h1 or not h3:
        return h1 or h3
    years = [set(re.findall(r"\b\d{4}\b", heading)) for heading in (h1, h3)]
    alike = len(words(h1) & words(h3)) / min(len(words(h1)), len(words(h3))) >= 0.5
    return h1 if alike and all(years) and years[0] != years[1] else h3


def event(page):
    root = parse(page)
    headings = {tag: node.text() for tag in ("h1", "h3", "h5") for node in root.all(tag, "page-header")}
    first, _, last = headings["h5"].partition(" to ")
    statistics = root.first("table", "table-sm").text()
    races, section = [], None
    for table in root.all("table", "entry_list_data"):
        for row in table.first("tbody").all("tr"):
            if row.first("th"):
                section = row.first("th").text()
            race = row.first("a") and link_id(row.first("a"), "view_race_result")
            if race:
                order, label = re.fullmatch(r"Race (\d+): (.*)", row.first("a").text()).groups()
                both = re.fullmatch(r"(.*?) \((.*)\)", label)
                races.insert(0, {"id": race, "order": int(order), "section": section,
                                 "class": both[1] if both else label, "label": both[2] if both else label,
                                 "completed": completed(list(row.all("td"))[1].text())})
    return {"name": event_name(headings.get("h1"), headings.get("h3")), "first_day": day(first),
            "last_day": day(last or first), "races": races,
            "n_entries": int(re.search(r"Entries: (\d+)", statistics)[1]),
            "n_drivers": int(re.search(r"Drivers: (\d+)", statistics)[1]),
            "n_laps": int(re.search(r"Total Race Laps ([\d,]+)", statistics)[1].replace(",", ""))}


def entries(page):
    result = []
    for table in parse(page).all("table"):
        header = table.first("th")
        if header.first("div"):
            name = header.first("div", "class_header").text()
            n = header.first("div", "class_sub_header").text().removeprefix("Entries: ")
        else:
            name, n = re.fullmatch(r"(.*) Entries: (\d+)", header.text()).groups()
        rows = list(table.first("tbody").all("tr"))
        assert len(rows) == int(n)
        for row in rows:
            car, driver, transponder = row.all("td")
            hidden, line = driver.first("span", "hidden"), driver.first("br")
            shown = driver.children[:driver.children.index(line)] if line else []
            result.append({"class": name, "car": int(car.text()),
                           "name": "".join(shown) if line else driver.text([hidden]),
                           "transponder": int(transponder.text()) if transponder.text() else None})
    return result


# ---- laps ----

TOKEN = re.compile(r"""\s*('(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|\w+|[\[\]{},:])""")


def value(text, at):
    """The value at an offset of a script, and the offset after it."""
    def token(at):
        match = TOKEN.match(text, at)
        return match[1], match.end()

    word, end = token(at)
    if word == "[":
        result = []
        while token(end)[0] != "]":
            item, end = value(text, end)
            result.append(item)
            if token(end)[0] == ",":
                end = token(end)[1]
        return result, token(end)[1]
    if word == "{":
        result = {}
        while token(end)[0] != "}":
            key, end = value(text, end)
            colon, end = token(end)
            assert colon == ":", f"{colon!r} after {key!r}"
            result[key], end = value(text, end)
            if token(end)[0] == ",":
                end = token(end)[1]
        return result, token(end)[1]
    return re.sub(r"\\(.)", r"\1", word[1:-1]) if word[0] in "'\"" else word, end


def laps(root):
    """racerLaps by driver id."""
    result = {}
    for script in root.all("script"):
        text = "".join(script.children)
        for match in re.finditer(r"racerLaps\[(\d+)\] *= *(?=\{)", text):
            result[int(match[1])], end = value(text, match.end())
            assert text[end] == ";"
    return result


def lap_times(racer):
    numbers = [int(lap["lapNum"]) for lap in racer["laps"]]
    assert numbers == list(range(len(numbers))), numbers
    for lap in racer["laps"][1:]:
        assert re.fullmatch(r"\d+/[\d:.]+", lap["pace"]), lap
    return {"lap_ms": [ms(lap["time"]) for lap in racer["laps"][1:]],
            "lap_positions": [int(lap["pos"]) for lap in racer["laps"][1:]]}


# ---- races ----

COLUMNS = {"Avg Lap": "average_ms", "Avg Top 5": "top5_ms", "Avg Top 10": "top10_ms", "Avg Top 15": "top15_ms",
           "Top 3 Consecutive": "top3_ms"}


def row_result(cells, racers):
    driver, link = cells["Driver"], cells["Driver"].first("a", "driver_laps")
    name = re.sub(r"^\d+ ", "", driver.first("span", "driver_name").text())
    by_name = [driver_id for driver_id, racer in racers.items() if racer["driverName"] == name]
    if link:
        driver_id = int(link.attributes["data-driver-id"])
    else:
        driver_id = by_name[0] if by_name else None
    n_laps, _, total = cells["Laps/Time"].text().partition("/")
    fastest = cells["Fastest Lap"]
    lap = fastest.first("sup")
    result = {"position": int(cells["Pos"].text()), "car": int(driver.first("span", "car_num").text()), "name": name,
              "driver_id": driver_id, "laps": int(n_laps), "total_ms": ms(total), "behind": cells["Behind"].text(),
              "qual": int(cells["Qual"].text()), "fast_ms": ms(fastest.text([lap])),
              "fast_lap": int(lap.text()) if lap else None,
              "deviation_hundredths": hundredths(cells["Std. Deviation"].text()) if "Std. Deviation" in cells else None,
              "consistency_hundredths": hundredths(cells["Consistency"].text()),
              "lap_ms": [], "lap_positions": []}
    for header, member in COLUMNS.items():
        hidden = cells[header].first("div", "hidden").text() if header in cells else ""
        result[member] = ms(hidden)
        assert not hidden or ms(cells[header].text([cells[header].first("div")])) == ms(hidden)
    if driver_id in racers:
        result.update(lap_times(racers[driver_id]))
    return result


def race(page):
    root = parse(page)
    racers = laps(root)
    table, headers = next((table, [th.text() for th in row.all("th")])
                          for table in root.all("table") for row in table.first("thead").all("tr")
                          if row.first("th").text() == "Pos" and "Behind" in [th.text() for th in row.all("th")])
    assert "race_result" in table.classes or table.attributes.get("id") == "DataTables_Table_0"
    about = [span.text() for span in root.all("span", "class_sub_header")]
    results = [row_result(dict(zip(headers, row.all("td"), strict=True)), racers)
               for row in table.first("tbody").all("tr")]
    return {"order": int(root.first("div", "race_num").text()), "label": root.first("span", "class_header").text(),
            "section": about[0].removeprefix("Round: "),
            "length_s": ms(about[1].removeprefix("Length: ").removesuffix(" Timed")) // 1000, "results": results,
            "n_racers": len(racers)}
