/**
 * Seconds of an iteration on N hosts of a cluster by the planner's cost model, compared with one host:
 * computing as estimated for a host's device, factors sent by its all-gather over the hosts' links, and the
 * work of Spark's JVMs as measured (bench/results, `spark-exchange`).
 *
 *     node bench/spark/hosts.ts [--gbit 10] [--cores 16 | --gpus]
 */
import { sizedParams } from '../../operators/als/implicit/sized-params.ts';
import { parseArgs } from 'node:util';
import { exchangeCost } from '../../engine/run/exchanges/cost.ts';
import { usualGrid } from '../../operators/als/plan/grid.ts';
import { alsProblem } from '../../operators/als/plan/problem.ts';
import { ALS } from '../../api/training/als.ts';
import { assumedDevices } from '../../operators/planner/assumed-devices.ts';
import { costOf } from '../../operators/als/plan/cost/cost.ts';
import { factorBytes } from '../../operators/planner/sizes.ts';
import { findPreset } from '../../synthetic/presets.ts';

const { values } = parseArgs({
  options: {
    gbit: { type: 'string', default: '10' },
    cores: { type: 'string', default: '16' },
    gpus: { type: 'boolean', default: false },
  },
});
const bytesPerSecond = (Number(values.gbit) * 1e9) / 8;

/**
 * Measured on one machine with two executors: seconds of a stage, and a host's CPU seconds per received byte
 * of a side.
 */
const STAGE = 0.1;
const SHUFFLED = 13e-9;
const BROADCAST = 35e-9;

const hosts = [2, 4, 8, 16];

function computing(
  shape: { readonly users: number; readonly items: number; readonly ratings: number },
  rank: number,
): number {
  const { compute, host } = assumedDevices([141e9]);
  const device = values.gpus ? compute[0] : { ...host, parallelism: Number(values.cores) };
  const params = sizedParams(ALS.spark({ rank }).params, shape);
  return costOf(
    alsProblem(shape, params, { compute: [device], host: device }, undefined, { grid: usualGrid([device]) }),
  ).seconds;
}

/** Seconds to send both sides of an iteration, from each of n hosts to all. */
function travelling(bytes: readonly number[], n: number, how: 'shuffle' | 'broadcast'): number {
  const places = Array.from({ length: n }, (_, host) => `gpu:${host}` as const);
  const links = { places, bytesPerSecond: places.map(() => places.map(() => bytesPerSecond)), duplex: true };
  return bytes.reduce((total, side) => {
    if (how === 'shuffle')
      return (
        total +
        STAGE +
        SHUFFLED * side +
        exchangeCost({ how: 'all-gather', bytes: side, places }, links).seconds
      );
    // Sent to the driver, and from there from host to host.
    return total + STAGE + BROADCAST * side + (2 * side) / bytesPerSecond;
  }, 0);
}

console.log(
  `seconds of an iteration by hosts of ${values.gpus ? 'one H200' : `${values.cores} cores`}, links of ${values.gbit} Gbit/s: shuffle, broadcast`,
);
console.log(
  `${'set, rank'.padEnd(22)}${'ratings a row'.padStart(14)}${'one host'.padStart(10)}${hosts.map((n) => `${n} hosts`.padStart(16)).join('')}`,
);
for (const [name, rank] of [
  ['movielens20m', 64],
  ['netflix', 100],
  ['yahoomusic', 100],
  ['hugewiki', 100],
] as const) {
  const { users, items, train: ratings } = findPreset(name);
  const one = computing({ users, items, ratings }, rank);
  const sides = [users, items].map((rows) => factorBytes(rows, rank));
  const cells = hosts.map((n) =>
    (['shuffle', 'broadcast'] as const).map((how) => one / n + travelling(sides, n, how)),
  );
  console.log(
    `${`${name}, ${rank}`.padEnd(22)}${(ratings / (users + items)).toFixed(0).padStart(14)}${one.toFixed(2).padStart(10)}${cells
      .map((cell) =>
        cell
          .map((s) => s.toFixed(2))
          .join(', ')
          .padStart(16),
      )
      .join('')}`,
  );
}
