"""The bugs that the simulator must find can be planted still."""

import mutants
import planted
import planted_groups


def test_planted_bugs_fit_the_sources():
    assert not mutants.unfit([*planted.mutants(), *planted_groups.mutants()])


def test_names_are_their_own():
    names = [m.name for m in (*planted.mutants(), *planted_groups.mutants())]
    assert len(set(names)) == len(names)
