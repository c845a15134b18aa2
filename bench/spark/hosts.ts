/**
 * Seconds of an iteration on N hosts of a cluster by the planner's cost model, compared with one host:
 * computing as estimated for a host's device, the rows that hosts need sent over their links, and the work of
 * Spark's JVMs as measured (bench/results, `spark-exchange`).
 *
 *     node bench/spark/hosts.ts [--gbit 10] [--cores 16 | --gpus]
 */
import { parseArgs } from 'node:util';
import { factorBytes } from '../../operators/planner/sizes.ts';
import { findPreset } from '../../synthetic/presets.ts';
import { BROADCAST, computing, receivedBytes, SHUFFLED, STAGE } from './model.ts';

const { values } = parseArgs({
  options: {
    gbit: { type: 'string', default: '10' },
    cores: { type: 'string', default: '16' },
    gpus: { type: 'boolean', default: false },
  },
});
const bytesPerSecond = (Number(values.gbit) * 1e9) / 8;

const hosts = [2, 4, 8, 16];

/** Seconds to send both sides of an iteration: the rows that each of n hosts needs, or whole sides. */
function travelling(bytes: readonly number[], how: 'shuffle' | 'broadcast'): number {
  return bytes.reduce(
    (total, side) =>
      total +
      STAGE +
      (how === 'shuffle'
        ? (SHUFFLED + 1 / bytesPerSecond) * side
        : // Sent to the driver, and from there from host to host.
          (BROADCAST + 2 / bytesPerSecond) * side),
    0,
  );
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
  const one = computing({ users, items, ratings }, rank, values.gpus ? 'gpu' : Number(values.cores));
  const sides = [users, items].map((rows) => factorBytes(rows, rank));
  const cells = hosts.map((n) => {
    const needed = receivedBytes({ users, items, ratings }, rank, n);
    return [
      one / n + travelling([needed.users, needed.items], 'shuffle'),
      one / n + travelling(sides, 'broadcast'),
    ];
  });
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
