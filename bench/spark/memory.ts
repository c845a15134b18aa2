/**
 * The memory of two workers that train as on two hosts, and the bytes that they exchange, compared with the model
 * by which a cluster plans a fit: with the rows that each block needs, and with sums of the items' equations. The
 * worker's peak is VmHWM of Linux.
 *
 *     npm run build && node bench/spark/memory.ts [--users 600000] [--items 6000] [--ratings 3000000] [--rank 64]
 *         [--exchange rows | equations]
 */
import { readFileSync } from 'node:fs';
import { parseArgs } from 'node:util';
import type { JsonObject } from '../../engine/json.ts';
import { equationColumns } from '../../operators/tasks/equation-tasks.ts';
import { blocksOfIds } from '../../api/worker/out-rows.ts';
import { type Frame, ratingStream, WorkerParent } from '../../test/support/worker-parent.ts';
import { sentBytes } from './simulate.ts';

const { values } = parseArgs({
  options: {
    users: { type: 'string', default: '600000' },
    items: { type: 'string', default: '6000' },
    ratings: { type: 'string', default: '3000000' },
    rank: { type: 'string', default: '64' },
    exchange: { type: 'string' },
  },
});
const [users, items, ratings, rank] = [values.users, values.items, values.ratings, values.rank].map(Number);
const HOSTS = 2;
/** As in the plugin's RowTask: a block that needs a larger share of another one's rows is sent all of them. */
const MOST = 0.75;
const MIB = 1 << 20;
type Side = 'users' | 'items';
const sides = ['users', 'items'] as const;

interface Built extends JsonObject {
  readonly sends: number[];
  readonly columns: number;
  readonly bytes: {
    readonly kept: number;
    readonly loading: number;
    readonly solving: number;
    readonly process: number;
    readonly equations: { readonly kept: number; readonly forming: number; readonly summing: number };
  };
}

/** Each user rates about as many items, drawn at random; a user's ratings are adjacent. */
function draw() {
  const columns = { users: new Int32Array(ratings), items: new Int32Array(ratings) };
  let state = 1;
  for (let at = 0; at < ratings; at++) {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0;
    columns.users[at] = Math.floor((at * users) / ratings);
    columns.items[at] = Math.floor((state / 2 ** 32) * items);
  }
  return columns;
}

const sums = { ratings, squares: 14 * ratings };
const drawn = draw();

/** Sends a side's ratings of one host in parts, and builds its block. */
async function load(worker: WorkerParent, host: number, side: Side): Promise<Built> {
  const owners = blocksOfIds({ type: 'int32', values: drawn[side] }, HOSTS);
  const block = `${side}-${host}`;
  let rows = 0;
  const part = { users: [] as number[], items: [] as number[], ratings: [] as number[] };
  const send = async () => {
    await worker.ask({ type: 'load', block, side }, ratingStream(part, { batchRows: 100_000 }));
    rows += part.users.length;
    for (const column of Object.values(part)) column.length = 0;
  };
  for (let at = 0; at < ratings; at++) {
    if (owners[at] !== host) continue;
    part.users.push(drawn.users[at]);
    part.items.push(drawn.items[at]);
    part.ratings.push(1 + (at % 5));
    if (part.users.length === 200_000) await send();
  }
  await send();
  return (await worker.ask({ type: 'build', block, rows, blocks: HOSTS, most: MOST })).answer.header as Built;
}

const each = <T>(work: (host: number) => Promise<T>) => Promise.all([...Array(HOSTS).keys()].map(work));
const sizeOf = (frames: readonly Frame[]) => frames.reduce((all, { payload }) => all + payload.length, 0);
const sum = (values: readonly number[]) => values.reduce((all, one) => all + one, 0);

/**
 * Solves a side from the other one; returns the bytes that the hosts received for it. A host takes its own rows
 * from its worker, but is sent its own equations, as in Spark.
 */
async function solve(workers: readonly WorkerParent[], side: Side, version: number, summed: boolean) {
  const from = side === 'users' ? 'items' : 'users';
  let bytes = 0;
  // One destination after the other, so that this process holds few frames.
  for (let to = 0; to < HOSTS; to++) {
    const given = { block: `${side}-${to}`, version: version - 1, ...sums };
    for (const [host, worker] of workers.entries()) {
      if (host === to && !summed) {
        await worker.ask({ ...given, type: 'take', from: `${from}-${host}`, to });
        continue;
      }
      const type = summed ? 'equations' : 'send';
      const request = { type, block: `${from}-${host}`, version: version - 1, to };
      const { factors } = await worker.ask(request);
      bytes += sizeOf(factors);
      for (const { payload } of factors)
        await workers[to].ask({ ...given, type: summed ? 'add' : 'fixed' }, payload);
      worker.frames.length = 0;
    }
    const request = { type: 'solve', block: `${side}-${to}`, fixed: version - 1, previous: null, version };
    await workers[to].ask({ ...request, equations: summed, ...sums });
    workers[to].frames.length = 0;
  }
  return bytes;
}

/** Bytes of a worker by the model, as the plugin's ExchangePlan sums them. */
function planned([ofUsers, ofItems]: readonly Built[], summed: boolean): number {
  const [u, i] = [ofUsers.bytes, ofItems.bytes];
  const byColumn = summed ? u.equations.kept : 0;
  const solvingItems = summed ? Math.max(u.equations.forming, i.equations.summing) : i.solving;
  const loading = Math.max(i.loading, u.loading - i.kept);
  const working = Math.max(u.solving, solvingItems, loading - byColumn);
  return u.kept + i.kept + byColumn + working + u.process;
}

function peak(worker: WorkerParent): number {
  const status = readFileSync(`/proc/${String(worker.child.pid)}/status`, 'utf8');
  return Number(/VmHWM:\s+(\d+) kB/.exec(status)?.[1]) * 1024;
}

for (const summed of values.exchange === undefined ? [false, true] : [values.exchange === 'equations']) {
  const workers = Array.from({ length: HOSTS }, () => new WorkerParent());
  for (const worker of workers)
    worker.write(
      `${JSON.stringify({ protocol: 1, command: 'rows', exchange: 'float16', params: { rank } })}\n`,
    );
  const built: Built[][] = await each(async () => []);
  for (const side of sides)
    for (const [host, worker] of workers.entries()) built[host].push(await load(worker, host, side));
  for (const [host, worker] of workers.entries())
    await worker.ask({ type: 'start', block: `users-${host}`, version: 0, ...sums });
  const bytes = { users: 0, items: 0 };
  for (let iteration = 1; iteration <= 2; iteration++) {
    bytes.items = await solve(workers, 'items', 2 * iteration - 1, summed);
    bytes.users = await solve(workers, 'users', 2 * iteration, false);
  }
  const rowsOf = (side: 0 | 1) =>
    sum(built.flatMap((blocks, host) => blocks[side].sends.filter((_, to) => to !== host)));
  const shares = sum(built.map(([ofUsers]) => ofUsers.columns)) * (4 * equationColumns(rank, false) + 8);
  const model = { items: summed ? shares : rowsOf(0) * sentBytes(rank), users: rowsOf(1) * sentBytes(rank) };
  console.log(summed ? 'items from sums of equations' : 'items from the rows needed');
  for (const side of ['items', 'users'] as const)
    console.log(
      `  ${side}: ${(bytes[side] / MIB).toFixed(1)} MiB received, by the model ${(model[side] / MIB).toFixed(1)}`,
    );
  for (const [host, worker] of workers.entries())
    console.log(
      `  worker ${host}: ${(peak(worker) / MIB).toFixed(0)} MiB, ` +
        `by the model ${(planned(built[host], summed) / MIB).toFixed(0)}`,
    );
  for (const worker of workers) worker.request({ type: 'end' });
  await each((host) => workers[host].ended);
}
