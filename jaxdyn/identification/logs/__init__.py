"""Logs: readers of file formats, the mapping of columns to joint coordinates and units, and held-out data."""

from jaxdyn.identification.logs._columns import Columns as Columns
from jaxdyn.identification.logs._columns import Source as Source
from jaxdyn.identification.logs._columns import check_source as check_source
from jaxdyn.identification.logs._log import Channel as Channel
from jaxdyn.identification.logs._log import Log as Log
from jaxdyn.identification.logs._log import check_log as check_log
from jaxdyn.identification.logs._logged_inputs import LoggedInputs as LoggedInputs
from jaxdyn.identification.logs._logged_inputs import has_logged_inputs as has_logged_inputs
from jaxdyn.identification.logs._logged_inputs import with_logged_inputs as with_logged_inputs
from jaxdyn.identification.logs._mapping import Recording as Recording
from jaxdyn.identification.logs._mapping import map_columns as map_columns
from jaxdyn.identification.logs._read import read_tables as read_tables
from jaxdyn.identification.logs._split import Split as Split
from jaxdyn.identification.logs._split import find_runs as find_runs
from jaxdyn.identification.logs._split import fold_blocks as fold_blocks
from jaxdyn.identification.logs._split import fold_runs as fold_runs
from jaxdyn.identification.logs._split import hold_out_runs as hold_out_runs
from jaxdyn.identification.logs._split import hold_out_share as hold_out_share
from jaxdyn.identification.logs._split import hold_out_times as hold_out_times
from jaxdyn.identification.logs.tables import LogError as LogError
from jaxdyn.identification.logs.tables import Table as Table
