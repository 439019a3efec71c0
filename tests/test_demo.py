import pytest

from pairmi import demo


def test_the_small_world_is_shown(capsys: pytest.CaptureFixture) -> None:
    demo.small_world()
    out = capsys.readouterr().out
    assert "mi-bound:budget=0,order=highest-entropy" in out
    assert "Mutual information (nats) of r1c2" in out
