"""How heavy readtrack is: its core, each of its parts, and what a site gets that installs the core.

python -m tests.weight
python -m tests.weight --against HEAD~20 --names
python -m tests.weight --json

With `--against` the other revision is measured by the same method, in turns with the present one.
`--names` lists below the table what it only counts: modules, imports, tables.

A part is a folder of readtrack with an `apps.py` of its own; the rest of `contrib/` counts as one,
too. The core is everything else, without migrations.

- lines: lines of Python that are not blank. functions: methods, too, but no lambdas.
- tokens a line: without comments and line ends, by lines that are neither blank nor only a comment.
  The lines of a docstring count, and it is one token.
- ternaries: conditional expressions for 1,000 of these lines.
- imports of parts: pairs of a module of the core and a module of a part that it imports, at its
  top, within a function or for types. A name that another module passes on counts for that module.
  A module that only a text names does not count.
- settings: those that `conf` knows.
- at start: modules of readtrack, their lines, and the memory (MB, resident) that `django.setup()`
  has added, on a site with the settings of README, the admin, and one model that is tracked. The
  processor time of `django.setup()` is divided by that of the same site without readtrack.
  Processes with and without it take turns, and these figures are medians of ROUNDS such pairs. On a
  busy machine the ratios of two runs differ by up to 0.1.
- after …: modules that are imported in a new process that has served a page with a count and a dot,
  or has flushed what changed: by Celery's task, or by `manage.py readtrack flush`.
- tables and indexes: what `migrate` makes for that site. Primary keys and unique constraints are
  indexes, too.
- first row of …: the act after which a table had a row for the first time. The acts follow upon one
  another: the first flush of the site, a view by a visitor, a read by a user, a publication, a
  flush of what changed, a full flush, an archive.
"""

import argparse
import ast
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tokenize
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from itertools import chain
from pathlib import Path
from statistics import median
from typing import Any, NamedTuple

from demo_project.engines.valkey import Valkey

ROOT = Path(__file__).parents[1]
SITE = ROOT / "tests" / "support" / "weighed_site"
PACKAGE = "readtrack"
PRESENT = "present"
ROUNDS = 11
APP_NAME = re.compile(r"""^ +name *= *["'](.+)["']""", re.MULTILINE)  # in an `apps.py`
NO_CODE = {
    tokenize.COMMENT,
    tokenize.DEDENT,
    tokenize.ENCODING,
    tokenize.ENDMARKER,
    tokenize.INDENT,
    tokenize.NEWLINE,
    tokenize.NL,
}

Figure = float | str | list[str]  # names of what is counted are a figure, too
Figures = dict[str, Figure]


class Module(NamedTuple):
    """A module of the package."""

    name: str  # with dots: readtrack.digest.mail
    text: str
    is_package: bool = False


class Code(NamedTuple):
    """What there is of some modules."""

    files: int
    lines: int  # that are not blank
    functions: int
    code_lines: int  # that are neither blank nor only a comment
    tokens: int
    ternaries: int

    @property
    def tokens_a_line(self) -> float:
        """Returns the number of tokens of a line; 0 without any lines."""
        return round(self.tokens / self.code_lines, 2) if self.code_lines else 0

    @property
    def ternaries_per_thousand(self) -> float:
        """Returns the conditional expressions of 1,000 lines; 0 without any lines."""
        return round(self.ternaries / self.code_lines * 1000, 1) if self.code_lines else 0


def modules_of(checkout: Path) -> dict[str, Module]:
    """Returns the modules of the package by name, without migrations."""
    found = {}
    for path in sorted((checkout / PACKAGE).rglob("*.py")):
        *folders, stem = path.relative_to(checkout).with_suffix("").parts
        if "migrations" in folders:
            continue
        is_package = stem == "__init__"
        name = ".".join(folders if is_package else [*folders, stem])
        found[name] = Module(name, path.read_text(encoding="utf-8"), is_package=is_package)
    return found


def parts_of(modules: Mapping[str, Module]) -> list[str]:
    """Returns the names of the folders that are apps of their own, and that of `contrib`."""
    parts = {f"{PACKAGE}.contrib"} & modules.keys()
    for name, module in modules.items():
        folder, _, last = name.rpartition(".")
        if last == "apps" and folder != PACKAGE and PACKAGE not in APP_NAME.findall(module.text):
            parts.add(folder)
    return sorted(parts)


def place_of(name: str, places: Iterable[str]) -> str:
    """Returns the innermost of the folders or modules in which the module is; "" for none."""
    within = [place for place in places if name == place or name.startswith(f"{place}.")]
    return max(within, key=len, default="")


def measured(modules: Iterable[Module]) -> Code:
    """Returns what there is of these modules."""
    each = [measured_text(module.text) for module in modules]
    return Code(*map(sum, zip(*each, strict=True))) if each else Code(0, 0, 0, 0, 0, 0)


def measured_text(text: str) -> Code:
    """Returns what there is of one module."""
    lines = sum(1 for line in text.splitlines() if line.strip())
    tokens = list(tokenize.generate_tokens(io.StringIO(text).readline))
    comments = [token for token in tokens if token.type == tokenize.COMMENT]
    comment_lines = sum(1 for token in comments if token.line[: token.start[1]].strip() == "")
    nodes = list(ast.walk(ast.parse(text)))
    return Code(
        files=1,
        lines=lines,
        functions=sum(isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) for node in nodes),
        code_lines=lines - comment_lines,
        tokens=sum(1 for token in tokens if token.type not in NO_CODE),
        ternaries=sum(isinstance(node, ast.IfExp) for node in nodes),
    )


def imports_of(module: Module, modules: Mapping[str, Module]) -> set[str]:
    """Returns the names of the modules that the module imports, wherever the import stands."""
    imported = set()
    for node in ast.walk(ast.parse(module.text)):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            source = source_of(node, module)
            for alias in node.names:
                submodule = f"{source}.{alias.name}"
                imported.add(submodule if submodule in modules else source)
    return imported & modules.keys()


def source_of(node: ast.ImportFrom, module: Module) -> str:
    """Returns the name of the module from which the statement imports."""
    if not node.level:
        return node.module or ""
    folders = module.name.split(".")
    outer = node.level - 1 if module.is_package else node.level
    return ".".join([*folders[: len(folders) - outer], *filter(None, [node.module])])


def imports_across(modules: Mapping[str, Module], parts: Iterable[str]) -> list[str]:
    """Returns the imports of modules of these parts by modules of the core."""
    places = list(parts)
    return [
        f"{name} > {imported}"
        for name, module in modules.items()
        if not place_of(name, places)
        for imported in sorted(imports_of(module, modules))
        if place_of(imported, places)
    ]


def code_figures(modules: Mapping[str, Module]) -> Figures:
    """Returns the figures of the text of the package."""
    titles = {part: part.removeprefix(f"{PACKAGE}.") for part in parts_of(modules)}
    by_part = divided(modules, titles)
    figures: Figures = {}
    for title, some in (("core", by_part.pop("")), ("package", modules.values())):
        code = measured(some)
        figures |= sizes(title, code)
        figures[f"{title}: tokens a line"] = code.tokens_a_line
        figures[f"{title}: ternaries"] = code.ternaries_per_thousand
    for part, some in by_part.items():
        figures |= sizes(f"part {part}", measured(some))
    figures["core: imports of parts"] = imports_across(modules, titles)
    return figures


def divided(modules: Mapping[str, Module], titles: Mapping[str, str]) -> dict[str, list[Module]]:
    """Returns the modules by the title of the part in which they are; "" is the core."""
    by_title: dict[str, list[Module]] = {title: [] for title in ["", *titles.values()]}
    for name, module in modules.items():
        place = place_of(name, titles)
        by_title[titles.get(place, "")].append(module)
    return by_title


def sizes(title: str, code: Code) -> Figures:
    """Returns the figures that every part has."""
    return {
        f"{title}: files": code.files,
        f"{title}: lines": code.lines,
        f"{title}: functions": code.functions,
    }


class Site:
    """The site in a folder of its own, beside the readtrack of a checkout; of none: without it."""

    def __init__(self, checkout: Path | None) -> None:
        self.checkout = checkout
        self.folder = Path(tempfile.mkdtemp(prefix="readtrack-weight-"))
        shutil.copytree(SITE, self.folder / SITE.name)

    def run(self, action: str, **environment: str) -> Any:
        """Returns what a new process says of the action.

        Raises RuntimeError with its output if it fails.
        """
        path = [str(folder) for folder in (self.folder, self.checkout) if folder]
        variables = {
            **os.environ,
            "DJANGO_SETTINGS_MODULE": f"{SITE.name}.settings",
            "PYTHONDONTWRITEBYTECODE": "",  # only the first start of a site compiles
            "PYTHONHASHSEED": "0",
            "PYTHONPATH": os.pathsep.join(path),
            **environment,
        }
        if self.checkout is None:
            variables["WEIGHT_WITHOUT_READTRACK"] = "1"
        command = [sys.executable, "-W", "ignore", "-m", f"{SITE.name}.probe", action]
        ended = subprocess.run(
            command, cwd=self.folder, env=variables, check=False, capture_output=True, text=True
        )
        if ended.returncode:
            raise RuntimeError(f"{action} in {self.checkout} failed:\n{ended.stderr}")
        return json.loads(ended.stdout)

    def close(self) -> None:
        """Removes the folder."""
        shutil.rmtree(self.folder)


def start_figures(sites: Mapping[str, Site], bare: Site) -> dict[str, Figures]:
    """Returns the figures of a start by the name of the site. All sites start in turns."""
    starts: dict[str, list[Any]] = {name: [] for name in ["", *sites]}
    for _ in range(ROUNDS + 1):
        for name, site in {"": bare, **sites}.items():
            starts[name].append(site.run("start"))
    for found in starts.values():
        del found[0]  # it has compiled the modules
    bare_starts = starts.pop("")
    return {
        name: figures_of_starts(found, bare_starts, checkout=sites[name].checkout)
        for name, found in starts.items()
    }


def figures_of_starts(
    starts: Sequence[Any], bare_starts: Sequence[Any], *, checkout: Path | None
) -> Figures:
    """Returns the figures of a site's starts, by those of the site without readtrack."""
    modules = starts[0]["modules"]
    for file in modules.values():
        if checkout not in Path(file).parents:
            raise RuntimeError(f"{file} is not of {checkout}.")
    code = measured_files(modules.values())
    rounds = list(zip(starts, bare_starts, strict=True))
    ratio = median(start["seconds"] / bare["seconds"] for start, bare in rounds)
    added = median(start["memory"] - bare["memory"] for start, bare in rounds)
    return {
        "at start: modules": list(modules),
        "at start: lines of these": code.lines,
        "at start: memory added (MB)": round(added / 1_000_000, 1),
        "at start: processor time, ratio": round(ratio, 2),
    }


def measured_files(files: Iterable[str]) -> Code:
    """Returns what there is of the modules in these files."""
    return measured(Module(file, Path(file).read_text(encoding="utf-8")) for file in files)


def work_figures(site: Site) -> Figures:
    """Returns the figures of the site at work. It begins with an empty Redis, and empty tables."""
    with Valkey() as valkey:
        servers = {
            "WEIGHT_REDIS_URL": valkey.url,
            "WEIGHT_DATABASE": str(site.folder / "work.sqlite3"),
        }
        prepared = site.run("prepare", **servers)
        page = site.run("page", **servers)
        flush = site.run("flush", **servers)
        command = site.run("command", **servers)
    if flush["views"] != 1:
        raise RuntimeError(f"The page of {site.checkout} counted {flush['views']} views, not 1.")
    return {
        "settings": prepared["settings"],
        "after a page: modules": list(page["modules"]),
        "after a flush, Celery: modules": list(flush["modules"]),
        "after a flush, command: modules": list(command["modules"]),
        "tables": list(prepared["indexes"]),
        "indexes": sum(prepared["indexes"].values()),
        **row_figures(site, prepared["indexes"]),
    }


def row_figures(site: Site, tables: Iterable[str]) -> Figures:
    """Returns the first act after which each table has a row."""
    with Valkey() as valkey:
        servers = {
            "WEIGHT_REDIS_URL": valkey.url,
            "WEIGHT_DATABASE": str(site.folder / "rows.sqlite3"),
        }
        site.run("prepare", **servers)
        filled_after = site.run("rows", **servers)
    return {f"first row of {table}": first_act(table, filled_after) for table in sorted(tables)}


def first_act(table: str, filled_after: Mapping[str, Sequence[str]]) -> str:
    """Returns the first act after which the table is filled; "none" if it stays empty."""
    return next((act for act, tables in filled_after.items() if table in tables), "none")


@contextmanager
def checkout_of(revision: str) -> Iterator[Path]:
    """Yields a folder with the files of the revision. Raises CalledProcessError without one."""
    with tempfile.TemporaryDirectory(prefix="readtrack-weight-") as folder:
        checkout = Path(folder) / "checkout"
        git("worktree", "add", "--quiet", "--detach", str(checkout), revision)
        try:
            yield checkout
        finally:
            git("worktree", "remove", "--force", str(checkout))


def git(*words: str) -> None:
    """Runs git in the checkout."""
    subprocess.run(["git", *words], cwd=ROOT, check=True)


def weigh(checkouts: Mapping[str, Path]) -> dict[str, Figures]:
    """Returns all figures of each checkout, by its name."""
    with ExitStack() as folders:
        sites = {name: Site(checkout) for name, checkout in checkouts.items()}
        bare = Site(None)
        for site in [bare, *sites.values()]:
            folders.callback(site.close)
        starts = start_figures(sites, bare)
        return {
            name: {
                **code_figures(modules_of(checkouts[name])),
                **starts[name],
                **work_figures(site),
            }
            for name, site in sites.items()
        }


def table(columns: Mapping[str, Figures]) -> str:
    """Returns the figures as text, a column for each checkout, with a dash for what it lacks."""
    titles = titles_of(columns)
    rows = [["", *columns]]
    rows += [[title, *(cell(column.get(title)) for column in columns.values())] for title in titles]
    widths = [max(map(len, place)) for place in zip(*rows, strict=True)]
    lines = []
    for title, *cells in rows:
        right = [text.rjust(width) for text, width in zip(cells, widths[1:], strict=True)]
        lines.append("  ".join([title.ljust(widths[0]), *right]))
    return "\n".join(lines)


def titles_of(columns: Mapping[str, Figures]) -> list[str]:
    """Returns the titles of all figures, once each. Those that begin with the same word are
    together, even if only one checkout has them.
    """
    by_word: dict[str, list[str]] = {}
    for title in dict.fromkeys(chain(*columns.values())):
        word = title.split()[0]
        by_word.setdefault(word, []).append(title)
    return list(chain(*by_word.values()))


def cell(figure: Figure | None) -> str:
    """Returns a figure as the table shows it: of names it shows how many they are."""
    if figure is None:
        return "-"
    if isinstance(figure, str):
        return figure
    return f"{figure:,}" if isinstance(figure, int | float) else f"{len(figure):,}"


def names(columns: Mapping[str, Figures]) -> str:
    """Returns what the table only counts: all names, with the checkouts that have them."""
    lines = []
    for title in titles_of(columns):
        lists = {}
        for column, figures in columns.items():
            figure = figures.get(title)
            if isinstance(figure, list):
                lists[column] = figure
        if lists:
            lines += ["", title, *lines_of_names(lists, number_of_columns=len(columns))]
    return "\n".join(lines)


def lines_of_names(lists: Mapping[str, Sequence[str]], *, number_of_columns: int) -> Iterator[str]:
    """Yields a line for each name, which says who has it if not all checkouts do."""
    for name in sorted(set().union(*lists.values())):
        having = [column for column, listed in lists.items() if name in listed]
        suffix = "" if len(having) == number_of_columns else f"  (only {', '.join(having)})"
        yield f"  {name}{suffix}"


def main() -> None:
    """Prints the table, as the command line says."""
    summary, _, _ = (__doc__ or "").partition("\n")
    parser = argparse.ArgumentParser(prog="python -m tests.weight", description=summary)
    parser.add_argument("--against", metavar="REV", help="measure this revision, too")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="all figures and names, for programs")
    form.add_argument("--names", action="store_true", help="list what the table counts, too")
    options = parser.parse_args()
    with ExitStack() as folders:
        checkouts = {PRESENT: ROOT}
        if options.against:
            other = folders.enter_context(checkout_of(options.against))
            checkouts = {options.against: other, PRESENT: ROOT}
        columns = weigh(checkouts)
    text = json.dumps(columns, indent=2) if options.json else table(columns)
    if options.names:
        text += f"\n{names(columns)}"
    print(text)  # noqa: T201 - that is what it is for


if __name__ == "__main__":
    main()
