"""readtrack beside other packages: `python3 -m tests.beside [NAME …]`.

    python3 -m tests.beside                  # all of them: it needs the network, and some minutes
    python3 -m tests.beside cacheops -x      # one of them; words that begin with a dash go to pytest

The ordinary test run leaves these tests out, because each of them needs packages that the project does
not. A folder here is named after a package, and has:

- `requirements.txt`: the Python packages with their exact versions, and others that their pins ask for;
- `package.json`: the npm packages, with their exact versions;
- `settings.py`: the settings of its site, if those of all tests will not do;
- `cases.py`: tests like all others, with the same servers and fixtures. Pytest finds the file only if
  it is named on the command line.

Each folder gets an environment of its own, `.venv/beside-NAME-pyX.Y`. It lies on top of the checkout's
environment, so it holds only what `requirements.txt` names, and what has another version there.
docs/howto/beside.md tells sites what was run here.
"""
