/**
 * The model of training on many hosts of a cluster, by the planner's costs and the measured rates of Spark.
 */
import { ALS } from '../../api/training/als.ts';
import { sizedParams } from '../../operators/als/implicit/sized-params.ts';
import { costOf } from '../../operators/als/plan/cost/cost.ts';
import { usualGrid } from '../../operators/als/plan/grid.ts';
import { alsProblem } from '../../operators/als/plan/problem.ts';
import { assumedDevices } from '../../operators/planner/assumed-devices.ts';
import { bytesOfBlock } from '../../api/worker/block-bytes.ts';
import { baseBytes } from '../../api/training/plans/memory-budget.ts';

/**
 * Measured on one machine with two executors (bench/results, `spark-exchange`): seconds of a stage, and a
 * host's CPU seconds for each byte that it receives.
 */
export const STAGE = 0.1;
export const SHUFFLED = 13e-9;
export const BROADCAST = 35e-9;

export interface Shape {
  readonly users: number;
  readonly items: number;
  readonly ratings: number;
}

/** Seconds of an iteration on one host, beside the exchange; `device`: GPUs, or a number of cores. */
export function computing(shape: Shape, rank: number, cores: number | 'gpu'): number {
  const { compute, host } = assumedDevices([141e9]);
  const device = cores === 'gpu' ? compute[0] : { ...host, parallelism: cores };
  const params = sizedParams(ALS.spark({ rank }).params, shape);
  return costOf(
    alsProblem(shape, params, { compute: [device], host: device }, undefined, { grid: usualGrid([device]) }),
  ).seconds;
}

/**
 * The share of a side's rows that each host needs: rows with at least one of their `ratings / rows` ratings
 * in the host's block of the other side, to which a rating belongs with a probability of 1 / hosts.
 */
export function neededShare(rows: number, { ratings }: Pick<Shape, 'ratings'>, hosts: number): number {
  return 1 - (1 - 1 / hosts) ** (ratings / rows);
}

/** Bytes of a row in an Arrow stream: factors, id and offset. */
export function sentBytes(rank: number): number {
  return 4 * rank + 8;
}

/** Bytes that each host receives in an iteration, by side. */
export function receivedBytes(shape: Shape, rank: number, hosts: number): { users: number; items: number } {
  const of = (rows: number) => rows * neededShare(rows, shape, hosts) * sentBytes(rank);
  return { users: of(shape.users), items: of(shape.items) };
}

/** Bytes of a host's worker with a CPU: for its blocks, the rows that it needs, and the process. */
export function hostBytes(shape: Shape, rank: number, hosts: number, cores: number) {
  const blockOf = (rows: number, columns: number) => {
    const sent = (rows / hosts) * neededShare(rows, shape, hosts) * hosts;
    const needed = columns * neededShare(columns, shape, hosts);
    const sizes = { rows: rows / hosts, columns: needed, ratings: shape.ratings / hosts, sent };
    return bytesOfBlock(sizes, { rank, implicitPrefs: false });
  };
  const [users, items] = [blockOf(shape.users, shape.items), blockOf(shape.items, shape.users)];
  const kept = users.kept + items.kept;
  const working = Math.max(users.solving, items.solving, items.loading, users.loading - items.kept);
  return { kept, working, all: kept + working + baseBytes(cores) };
}
