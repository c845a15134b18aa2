/**
 * The ten best items of users, or the ten items most similar to an item by cosine, in one thread: the exact
 * search, the index of lists, and faiss (IndexIVFFlat and IndexIVFScalarQuantizer with 8 bits, by inner
 * product, with the same number of lists), in turn on the same factors and queries. Prints recall@10 against
 * the exact lists, milliseconds of the processor for each query (of all threads of the process), the rate
 * against the exact one, and milliseconds on the clock; the first are less disturbed by other work of the
 * machine. Requests of the library come 32 at a time, and include the messages to its thread.
 *
 *     node bench/serving/lists.ts MODEL [recommend|similar [ROUNDS [QUERIES [LISTS]]]]
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

const [folder, kind = 'recommend', ...numbers] = process.argv.slice(2);
const [rounds = 3, queries = 1000, wanted] = numbers.map(Number);
if (folder === undefined) throw new Error('name the folder of a model');
if (kind !== 'recommend' && kind !== 'similar') throw new Error(`unknown search ${kind}`);
const N = 10;
const VERSIONS = ['faiss-cpu==1.12.0', 'numpy==2.3.4'];
console.log(`${describeMachine()}, 1 thread`);

await using session = await Session.create({ device: 'cpu', workers: 1 });
const model = await session.loadModel(folder);
const { ids } = kind === 'recommend' ? model.userArrays : model.itemArrays;
const asked = Array.from({ length: queries }, (_, i) => ids[Math.floor((i * ids.length) / queries)]);
console.log(`${model.itemCount} items, ${model.features} features, ${kind}, ${queries} queries`);
const built = model.indexed.includes(kind)
  ? []
  : await model.buildIndex({ searches: [kind], ...(wanted ? { lists: wanted } : {}) });
const lists = built[0]?.lists ?? wanted ?? Math.round(4 * Math.sqrt(model.itemCount));
if (built.length > 0) console.log(`index of lists: ${JSON.stringify(built[0])}`);

interface Measured {
  /** Of the processor, and on the clock, for each query. */
  readonly busy: number;
  readonly milliseconds: number;
  readonly items: readonly (readonly unknown[])[];
}

const AT_ONCE = 32;

async function find(of: Model, id: (typeof asked)[number], index: boolean | number): Promise<unknown[]> {
  if (kind === 'recommend')
    return (await of.recommend(id, N, { index })).items.map(({ item }) => Number(item));
  return (await of.similar(id, N, { index })).similar.map((found) => Number(found.item));
}

async function measure(of: Model, index: boolean | number): Promise<Measured> {
  const items: unknown[][] = [];
  const [start, before] = [performance.now(), process.cpuUsage()];
  for (let from = 0; from < asked.length; from += AT_ONCE) {
    const some = asked.slice(from, from + AT_ONCE).map((id) => find(of, id, index));
    items.push(...(await Promise.all(some)));
  }
  const { user, system } = process.cpuUsage(before);
  const milliseconds = (performance.now() - start) / asked.length;
  return { busy: (user + system) / 1000 / asked.length, milliseconds, items };
}

interface Faiss {
  ask(coding: string, probes: number): Promise<Measured>;
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
  const child = spawn(
    python,
    [script, arrays, kind, String(model.rank), String(lists), String(queries), String(N)],
    {
      env: { ...process.env, OMP_NUM_THREADS: '1' },
      stdio: ['pipe', 'pipe', 'inherit'],
    },
  );
  const lines = createInterface({ input: child.stdout })[Symbol.asyncIterator]();
  const answer = async () => JSON.parse((await lines.next()).value as string) as never;
  console.log(`faiss: ${JSON.stringify(await answer())}`);
  rmSync(arrays, { recursive: true });
  return {
    ask: async (coding, probes) => {
      child.stdin.write(`${coding} ${probes}\n`);
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
if (kind === 'recommend') await model.prepare({ index: true });
const probed = (kind === 'recommend' ? [1, 2, 4, 8, 16, 32, 64] : [8, 32, 64, 128, 256]).filter(
  (probes) => probes < lists,
);
for (const index of [false, true]) await measure(model, index);
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
    for (const coding of faiss ? ['flat', 'sq8'] : [])
      print(`faiss ${coding}`, probes, (await faiss?.ask(coding, probes)) as Measured);
  }
  print('lists, auto', 0, await measure(model, true));
}
faiss?.end();
