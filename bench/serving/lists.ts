/**
 * The ten best items of users in one thread: the exact search, the index of lists, and faiss (IndexIVFFlat
 * and IndexIVFScalarQuantizer with 8 bits, by inner product, with the same number of lists), in turn on the
 * same factors and users. Prints recall@10 against the exact lists, milliseconds of the processor for each
 * user (of all threads of the process), the rate against the exact one, and milliseconds on the clock; the
 * first are less disturbed by other work of the machine. Requests of the library come 32 at a time, and
 * include the messages to its thread.
 *
 *     node bench/serving/lists.ts MODEL [ROUNDS [QUERIES [LISTS]]]
 *
 * Without an index in the model's folder one is built and not saved. Python 3 makes an environment with the
 * versions of faiss-lists.py's first lines in build/faiss; FAISS=0 leaves faiss out.
 */
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { createInterface } from 'node:readline';
import { type Model, Session } from '../../index.ts';
import { describeMachine } from '../machine.ts';

const folder = process.argv[2];
const [rounds = 3, queries = 1000, wanted] = process.argv.slice(3).map(Number);
if (folder === undefined) throw new Error('name the folder of a model');
const N = 10;
const VERSIONS = ['faiss-cpu==1.12.0', 'numpy==2.3.4'];
console.log(`${describeMachine()}, 1 thread`);

await using session = await Session.create({ device: 'cpu', workers: 1 });
const model = await session.loadModel(folder);
const { ids } = model.userArrays;
const users = Array.from({ length: queries }, (_, i) => ids[Math.floor((i * ids.length) / queries)]);
console.log(`${model.itemCount} items, ${model.features} features, ${queries} users`);
const built = model.indexed.includes('recommend')
  ? []
  : await model.buildIndex({ searches: ['recommend'], ...(wanted ? { lists: wanted } : {}) });
const lists = built[0]?.lists ?? wanted ?? Math.round(4 * Math.sqrt(model.itemCount));
if (built.length > 0) console.log(`index of lists: ${JSON.stringify(built[0])}`);

interface Measured {
  /** Of the processor, and on the clock, for each user. */
  readonly busy: number;
  readonly milliseconds: number;
  readonly items: readonly (readonly unknown[])[];
}

const AT_ONCE = 32;

async function measure(of: Model, index: boolean | number): Promise<Measured> {
  const items: unknown[][] = [];
  const [start, before] = [performance.now(), process.cpuUsage()];
  for (let from = 0; from < users.length; from += AT_ONCE) {
    const some = users.slice(from, from + AT_ONCE).map((user) => of.recommend(user, N, { index }));
    for (const found of await Promise.all(some)) items.push(found.items.map(({ item }) => Number(item)));
  }
  const { user, system } = process.cpuUsage(before);
  const milliseconds = (performance.now() - start) / users.length;
  return { busy: (user + system) / 1000 / users.length, milliseconds, items };
}

interface Faiss {
  ask(kind: string, probes: number): Promise<Measured>;
  end(): void;
}

/** A process that has the indexes of faiss, and answers a line for each line. */
async function openFaiss(): Promise<Faiss> {
  const environment = resolve(import.meta.dirname, '../../build/faiss');
  const python = join(environment, 'bin/python');
  if (!existsSync(python)) {
    execFileSync('python3', ['-m', 'venv', environment]);
    execFileSync(python, ['-m', 'pip', 'install', '--quiet', ...VERSIONS], { stdio: 'inherit' });
  }
  const arrays = mkdtempSync(join(tmpdir(), 'factorflow-faiss-'));
  await model.exportFactors(arrays, { format: 'npy', overwrite: true });
  const script = join(import.meta.dirname, 'faiss-lists.py');
  const child = spawn(python, [script, arrays, String(lists), String(queries), String(N)], {
    env: { ...process.env, OMP_NUM_THREADS: '1' },
    stdio: ['pipe', 'pipe', 'inherit'],
  });
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const answer = async () => JSON.parse((await lines.next()).value as string) as never;
  console.log(`faiss: ${JSON.stringify(await answer())}`);
  rmSync(arrays, { recursive: true });
  return {
    ask: async (kind, probes) => {
      child.stdin.write(`${kind} ${probes}\n`);
      return answer();
    },
    end: () => void child.stdin.end(),
  };
}

function recallOf(exact: Measured, { items }: Measured): number {
  const hits = exact.items.flatMap((list, i) => list.filter((item) => items[i].includes(item)));
  return hits.length / exact.items.flat().length;
}

const faiss = process.env.FAISS === '0' ? undefined : await openFaiss();
await model.prepare({ index: true });
const probed = [1, 2, 4, 8, 16, 32, 64].filter((probes) => probes < lists);
await measure(model, true);
for (let round = 1; round <= rounds; round++) {
  const exact = await measure(model, false);
  console.log(`\nround ${round}: exact ${exact.busy.toFixed(3)} ms (${exact.milliseconds.toFixed(3)})`);
  const print = (name: string, probes: number, one: Measured) =>
    console.log(
      `${name.padEnd(12)} ${String(probes).padStart(4)} lists  recall@${N} ${recallOf(exact, one).toFixed(4)}` +
        `  ${one.busy.toFixed(3)} ms  ${(exact.busy / one.busy).toFixed(1)} x  (${one.milliseconds.toFixed(3)})`,
    );
  for (const probes of probed) {
    print('lists', probes, await measure(model, probes));
    for (const kind of faiss ? ['flat', 'sq8'] : [])
      print(`faiss ${kind}`, probes, (await faiss?.ask(kind, probes)) as Measured);
  }
  print('lists, auto', 0, await measure(model, true));
}
faiss?.end();
