/**
 * The ten best items of many users in one call, with one thread: the exact search, and the index of lists
 * with several numbers of lists, in turn on the same users. Prints recall@10 against the exact lists, milliseconds
 * of the processor for each user (of all threads of the process), the rate against the exact one, and
 * milliseconds on the clock. Checks that some lists equal the lists of single requests.
 *
 *     node bench/serving/list-batches.ts MODEL [ROUNDS [USERS [LISTS,LISTS,...]]]
 *
 * The model's folder has an index for recommend; the default number of lists is the index's.
 */
import { isDeepStrictEqual } from 'node:util';
import { Session } from '../../index.ts';
import { describeMachine } from '../machine.ts';

const [folder, rounds = '2', users = '2048', wanted] = process.argv.slice(2);
if (folder === undefined) throw new Error('name the folder of a model');
const N = 10;
const SINGLE = 32;
await using session = await Session.create({ device: 'cpu', workers: 1 });
const model = await session.loadModel(folder);
const { ids } = model.userArrays;
const asked = Array.from(
  { length: Number(users) },
  (_, i) => ids[Math.floor((i * ids.length) / Number(users))],
);
const uses = [...(wanted?.split(',').map(Number) ?? []), true];
console.log(
  `${describeMachine()}, 1 thread; ${model.itemCount} items, ${model.features} features, ${users} users`,
);

type Listed = Map<unknown, { readonly item: unknown; readonly score: number }[]>;

async function measure(index: boolean | number, of = asked) {
  const lists: Listed = new Map();
  const [start, before] = [performance.now(), process.cpuUsage()];
  for await (const batch of model.recommendForUsers(of, N, { index }))
    for (const { user, item, prediction } of batch) {
      const list = lists.get(user);
      if (list === undefined) lists.set(user, [{ item, score: prediction }]);
      else list.push({ item, score: prediction });
    }
  const { user, system } = process.cpuUsage(before);
  const milliseconds = (performance.now() - start) / of.length;
  return { lists, milliseconds, busy: (user + system) / 1000 / of.length };
}

function recallOf(exact: Listed, found: Listed): number {
  let [hits, all] = [0, 0];
  for (const [user, list] of exact) {
    const items = new Set(found.get(user)?.map(({ item }) => item));
    hits += list.filter(({ item }) => items.has(item)).length;
    all += list.length;
  }
  return hits / all;
}

async function checkSingle(index: boolean | number, { lists }: Awaited<ReturnType<typeof measure>>) {
  for (const user of asked.slice(0, SINGLE)) {
    const { items } = await model.recommend(user, N, { index });
    if (!isDeepStrictEqual(items, lists.get(user)))
      throw new Error(`user ${user} has other lists in a batch`);
  }
}

await measure(true, asked.slice(0, 300));
for (let round = 1; round <= Number(rounds); round++) {
  const exact = await measure(false);
  console.log(
    `\nround ${round}: exact ${exact.busy.toFixed(3)} ms (${exact.milliseconds.toFixed(3)} on the clock)`,
  );
  for (const index of uses) {
    const found = await measure(index);
    console.log(
      `${String(index).padStart(5)} lists  recall@${N} ${recallOf(exact.lists, found.lists).toFixed(4)}` +
        `  ${found.busy.toFixed(3)} ms  ${(exact.busy / found.busy).toFixed(1)} x` +
        `  (${found.milliseconds.toFixed(3)})`,
    );
    await checkSingle(index, found);
  }
}
