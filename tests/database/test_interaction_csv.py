"""Interactions as CSV, and what no rows of a file may say."""

from __future__ import annotations

from dataclasses import replace

import pytest

from vani.centre.placement_library.interactions import (
    Interaction,
    is_csv,
    lustre_objections,
    read_csv,
    refuse_contradictions,
    write_csv,
)
from vani.errors import InputError

ONE = Interaction("/lustre/a.0", 8 << 30, 1, 0, None, 1 << 30, 2, 0, (3, 1))

TABLES_1_AND_4 = """\
# IOR, file per process, PFL configuration 1
file,file_size,extent_id,extent_start,extent_end,stripe_size,stripe_count,rank,ost_list
/mnt/lustre/ior/test.0,8589934592,1,0,134217728,134217728,1,0,10
/mnt/lustre/ior/test.0,8589934592,2,134217728,536870912,134217728,3,0,24 29 34
/mnt/lustre/ior/test.0,8589934592,3,536870912,2147483648,201326592,8,0,15 2 28 25 11 21 7 33
/mnt/lustre/ior/test.0,8589934592,4,2147483648,8589934592,402653184,16,0,14 23 16 30 1 6 4 26 32 20 12 31 22 35 5 17
"""
TABLES_2_AND_5 = "File name,Stripe size,Stripe count,MPI rank,OST list\n/mnt/lustre/ior/test.0,1073741824,8,0,1 2 3 4 5 6 7 8\n"


def test_the_rows_of_the_papers_tables_are_read():
    rows = read_csv(TABLES_1_AND_4, "t.csv")
    assert [(row.extent_id, row.stripe_count, row.mpi_rank) for row in rows] == [
        (1, 1, 0),
        (2, 3, 0),
        (3, 8, 0),
        (4, 16, 0),
    ]
    assert rows[2].osts == (15, 2, 28, 25, 11, 21, 7, 33)
    assert read_csv(TABLES_2_AND_5, "t.csv") == [
        Interaction("/mnt/lustre/ior/test.0", None, 1, 0, None, 1 << 30, 8, 0, (1, 2, 3, 4, 5, 6, 7, 8))
    ]


def test_lustre_refuses_the_third_extent_of_table_1():
    told = lustre_objections(refuse_contradictions(read_csv(TABLES_1_AND_4, "t.csv")))
    assert told == [
        "/mnt/lustre/ior/test.0: extent end 2,147,483,648 is not a multiple of its stripe size 201,326,592"
    ]
    assert lustre_objections([ONE]) == []
    assert "is not below 4 GiB" in lustre_objections([replace(ONE, stripe_size=4 << 30)])[0]
    assert "is not a multiple of 65,536" in lustre_objections([replace(ONE, stripe_size=1000)])[0]


def test_written_interactions_are_read_back():
    rows = [replace(ONE, file=name) for name in ("/a,b", '/a"b', "/a\nb", "/a\r\nb", "/ ä ", "/#")]
    rows.append(Interaction("/n", None, 1, 0, None, 65536, 4, None, ()))
    assert read_csv(write_csv(rows), "t.csv") == rows


HEAD = "file_name,extent_start,extent_end,stripe_size,stripe_count,ost_list\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "column 'file_name' is missing; give file_name, "),
        ("file,stripe_size\n", "column 'stripe_count' is missing"),
        ("file,size\n", "column 'size' is not known"),
        ("file,file_name,stripe_size,stripe_count,ost_list\n", "column 'file_name' appears twice"),
        (HEAD + "/a,0\n", "t.csv:2: 2 cells where there are 6 columns"),
        (HEAD + '/a,0,,"65536\n', "t.csv:2: is not CSV"),
        (HEAD + "/a,0,,nan,1,0\n", "t.csv:2: stripe_size is 'nan'; give a whole number, 0 or more"),
        ("# made by hand\n" + HEAD + "/a,0,,-1,1,0\n", "t.csv:3: stripe_size is '-1'"),
        (HEAD + "/a,0,,,1,0\n", "t.csv:2: stripe_size is empty"),
        (HEAD + "/a,0,,inf,1,0\n", "stripe_size is 'inf'"),
        (HEAD + "/a,0,," + "9" * 5000 + ",1,0\n", "stripe_size is '999"),
        (HEAD + "/a,0,,65536,1,1;2\n", "t.csv:2: ost_list is '1;2'"),
    ],
)
def test_invalid_cell_is_refused_with_its_line(text, said):
    with pytest.raises(InputError) as found:
        read_csv(text, "t.csv")
    assert said in str(found.value)
    assert "\n" not in str(found.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"file": ""}, "a file: is not an absolute path"),
        ({"file": "a.0"}, "a.0: is not an absolute path"),
        ({"file": "/a\0"}, "is not an absolute path"),
        ({"file": "/" + "x" * 4095}, "the path has 4,096 bytes; 4,095 is the most"),
        ({"file": "/\udcff"}, "the path is not UTF-8 text"),
        ({"file": "/a\nb", "stripe_count": 3}, "/a\\nb: stripe count is 3, but 2 OSTs listed"),
        ({"stripe_size": 0}, "stripe size is 0"),
        ({"stripe_count": 0, "extent_start": 0, "osts": ()}, "only the beginning of a file can be on the metadata target"),
        ({"stripe_count": 2001, "osts": ()}, "stripe count is 2,001; give 0 to 2,000"),
        ({"extent_end": 0}, "extent end is 0"),
        ({"extent_end": 2**63}, "extent end is 9,223,372,036,854,775,808"),
        ({"osts": (1, 1)}, "an OST is listed twice"),
        ({"osts": (1, 70000)}, "OST 70000"),
        ({"extent_start": 5}, "the first extent starts at 5; begin at 0"),
    ],
)
def test_invalid_row_is_refused(change, said):
    with pytest.raises(InputError) as found:
        refuse_contradictions([replace(ONE, **change)])
    assert said in str(found.value)
    assert "\n" not in str(found.value)


@pytest.mark.parametrize(
    ("second", "said"),
    [
        ({"extent_id": 1}, "an extent id is given twice"),
        ({"file_size": 5}, "the extents give two file sizes"),
        ({"extent_start": 99}, "an extent ends at 100, the next one starts at 99"),
        ({"extent_start": 101}, "an extent ends at 100, the next one starts at 101"),
    ],
)
def test_extents_of_a_file_neither_overlap_nor_leave_gaps(second, said):
    first = replace(ONE, extent_end=100)
    with pytest.raises(InputError) as found:
        refuse_contradictions([replace(ONE, **{"extent_id": 2, "extent_start": 100, **second}), first])
    assert said in str(found.value)
    with pytest.raises(InputError, match="an extent ends at the end of the file"):
        refuse_contradictions([ONE, replace(ONE, extent_id=2, extent_start=100)])


def test_first_line_distinguishes_a_table_from_a_plan():
    assert is_csv(TABLES_1_AND_4) and is_csv(TABLES_2_AND_5)
    assert not is_csv("schema: vani.plan/1\n") and not is_csv('"') and not is_csv("")
