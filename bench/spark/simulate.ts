/**
 * Bytes, memory and seconds of an iteration of a set on clusters of several sizes, by the model of
 * bench/spark/model.ts: nothing is run.
 *
 *     node bench/spark/simulate.ts [--users 1e9] [--items 5e7] [--ratings 1e11] [--rank 64] [--cores 16]
 */
import { parseArgs } from 'node:util';
import { blockLimit, factorBytes } from '../../operators/planner/sizes.ts';
import { computing, hostBytes, neededShare, receivedBytes, SHUFFLED, STAGE, summedBytes } from './model.ts';

const { values } = parseArgs({
  options: {
    users: { type: 'string', default: '1e9' },
    items: { type: 'string', default: '5e7' },
    ratings: { type: 'string', default: '1e11' },
    rank: { type: 'string', default: '64' },
    cores: { type: 'string', default: '16' },
    gbit: { type: 'string', default: '10' },
    hosts: { type: 'string', default: '16,64,256' },
  },
});
const shape = {
  users: Number(values.users),
  items: Number(values.items),
  ratings: Number(values.ratings),
};
const [rank, cores, bytesPerSecond] = [
  Number(values.rank),
  Number(values.cores),
  (Number(values.gbit) * 1e9) / 8,
];
/** Bytes of the WebAssembly memory in which a CPU has the rows that it needs. */
const CPU_MEMORY = 2 ** 32;

const one = computing(shape, rank, cores);
console.log(
  "| hosts | users needed | users' rows, GB | items' equations, GB | CG vectors of 6 steps, GB | items' rows, GB | items are solved from | memory of a worker, GB | computing, s | exchange, s | what ends first |",
);
console.log(`|${'---|'.repeat(11)}`);
for (const hosts of values.hosts.split(',').map(Number)) {
  const received = receivedBytes(shape, rank, hosts);
  const { equations, vectors } = summedBytes(shape, rank, hosts);
  const summed = equations < received.users;
  const bytes = (summed ? equations : received.users) + received.items;
  const [users, items] = [shape.users, shape.items].map((rows) => neededShare(rows, shape, hosts));
  const memory = hostBytes(shape, rank, hosts, cores, summed);
  // Equations are formed from a host's own users.
  const usersThere = summed ? shape.users / hosts : users * shape.users;
  const fixed = factorBytes(Math.max(usersThere, items * shape.items), rank);
  const limits = [
    ...(shape.ratings / hosts > blockLimit.ratings ? ['ratings of a block'] : []),
    ...(fixed > CPU_MEMORY ? [`rows needed, ${gb(fixed)} GB, in the 4 GiB of a CPU's kernels`] : []),
  ];
  const cells = [
    hosts,
    `${(100 * users).toFixed(0)} %`,
    gb(received.users),
    gb(equations),
    gb(vectors(6)),
    gb(received.items),
    summed ? 'equations' : 'rows',
    gb(memory.all),
    (one / hosts).toFixed(0),
    (4 * STAGE + bytes * (SHUFFLED + 1 / bytesPerSecond)).toFixed(0),
    limits.join('; ') || '-',
  ];
  console.log(`| ${cells.join(' | ')} |`);
}

function gb(bytes: number): string {
  return (bytes / 1e9).toFixed(bytes < 1e10 ? 1 : 0);
}
