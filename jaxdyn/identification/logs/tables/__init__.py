"""Tables of columns, and the readers of CSV, npz, MATLAB and Parquet files."""

from jaxdyn.identification.logs.tables._arrays import read_mat as read_mat
from jaxdyn.identification.logs.tables._arrays import read_npz as read_npz
from jaxdyn.identification.logs.tables._budget import Budget as Budget
from jaxdyn.identification.logs.tables._csv import read_csv as read_csv
from jaxdyn.identification.logs.tables._parquet import read_parquet as read_parquet
from jaxdyn.identification.logs.tables._table import LogError as LogError
from jaxdyn.identification.logs.tables._table import Table as Table
