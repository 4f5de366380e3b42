"""``crashcart explain``: each kind of question has an answer, an unknown one a clear refusal."""

from __future__ import annotations

import pytest

from analyzer.errors import CrashcartError
from analyzer.explain import explain


@pytest.mark.parametrize(
    ("words", "answer"),
    [
        (("xid", "79"), "no longer answers"),
        (("cuda", "700"), "cuda.illegal-access"),
        (("cuda", "cudaErrorNoDevice"), "cuda.no-visible-device"),
        (("nccl", "Duplicate GPU detected : rank 0 and rank 1 both on CUDA device 60"), "nccl.duplicate-gpu"),
        (("memory.fragmentation",), "expandable_segments"),
    ],
)
def test_answers(words: tuple[str, ...], answer: str) -> None:
    assert answer in explain(words)


@pytest.mark.parametrize("words", [("xid",), ("xid", "9999"), ("cuda", "nothing"), ("memory.fragmentatoin",)])
def test_refusals(words: tuple[str, ...]) -> None:
    with pytest.raises(CrashcartError):
        explain(words)


def test_a_number_is_not_looked_for_everywhere() -> None:
    """100 as a share in some query is no CUDA error 100."""
    assert "power" not in explain(("cuda", "100"))
