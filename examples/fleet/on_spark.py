#!/usr/bin/env python3
"""A folder of captures to tables, by Spark: every task is a capture, or a part of a large one.

    spark-submit on_spark.py CAPTURES TABLES        or: python on_spark.py CAPTURES TABLES [--master local[*]]

Every machine needs the packages tcpwhy and pyarrow and must see CAPTURES, a path or a URI that pyarrow.fs knows. Spark gives a
task that is lost with its worker to another one, and commits what it writes as a whole.
"""

import argparse

import pyspark
import tcpwhy.fleet
from pyspark.sql import SparkSession


def write(spark, captures, tables, largest=tcpwhy.fleet.LARGEST):
    """Writes the tables, by day."""
    tasks = tcpwhy.fleet.tasks(captures, largest)
    types = spark.createDataFrame(tcpwhy.fleet.schema().empty_table()).schema
    rows = spark.createDataFrame(tasks, 'path string, part int, parts int').repartition(len(tasks))
    # Each capture is read once; on disk, since spans of many captures are more than memory.
    rows = rows.mapInArrow(tcpwhy.fleet.explain, types).persist(pyspark.StorageLevel.DISK_ONLY)
    for table in (*tcpwhy.fleet.TABLES, 'problems'):
        chosen = rows.where(f'{table} IS NOT NULL').select(f'{table}.*')
        chosen = chosen.sortWithinPartitions('capture')
        write = chosen.write.mode('overwrite').option('compression', 'zstd')
        (write.partitionBy('day') if 'day' in chosen.columns else write).parquet(f'{tables}/{table}')
    rows.unpersist()


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('captures')
    parser.add_argument('tables')
    parser.add_argument('--master')
    parser.add_argument('--largest', type=int, default=tcpwhy.fleet.LARGEST, help='bytes from which a capture is split')
    args = parser.parse_args()
    builder = SparkSession.builder.appName('tcpwhy')
    spark = (builder.master(args.master) if args.master else builder).getOrCreate()
    write(spark, args.captures, args.tables, args.largest)
    spark.stop()


if __name__ == '__main__':
    main()
