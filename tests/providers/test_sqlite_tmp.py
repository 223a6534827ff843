from itertools import count
from tests.providers.table_checks import check_tables
from vitehub_chat.state.providers.sqlite import open_sqlite
from vitehub_chat.testing.clock import FakeClock
def test_file(tmp_path) -> None:
    n = count()
    check_tables(lambda: open_sqlite(f"file:{tmp_path}/{next(n)}.db", clock=FakeClock(), durability="normal"), examples=60)
