import { execFileSync } from 'node:child_process';
import { existsSync, mkdtempSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { type Model, Session } from '../../index.ts';
import type { Case, Given } from '../harness.ts';
import { type EngineProcess, pythonEngine } from '../processes.ts';

const N = 10;
/** Requests of the library at a time. */
const AT_ONCE = 32;
const VERSIONS = ['faiss-cpu==1.12.0', 'numpy==2.3.4'];

const lists: Case = {
  about:
    'The ten best items of users, or (--search similar) those most similar to an item, in one thread: ' +
    'the exact search, the index of lists, and faiss (IndexIVFFlat and IndexIVFScalarQuantizer with 8 ' +
    'bits, as many lists), in turn on the same factors and queries. Milliseconds a query of the ' +
    'processor, of all threads, and on the clock; recall against the exact lists. Without an index in ' +
    'the folder MODEL one is built and not saved. Python 3 makes an environment in build/faiss; --faiss ' +
    '0 leaves faiss out.',
  words: 'MODEL',
  options: {
    search: 'recommend',
    queries: '1000',
    lists: '',
    probes: '1,2,4,8,16,32,64,128,256',
    faiss: '1',
  },
  columns: { processor: 'ms', clock: 'ms', 'recall@10': '' },
  warmUp: 1,
  async *rows(given) {
    const { search, queries, probes, faiss: hasFaiss } = given.options;
    await using session = await Session.create({ device: 'cpu', workers: 1 });
    const model = await session.loadModel(given.words[0]);
    const isSimilar = search === 'similar';
    const { ids } = isSimilar ? model.itemArrays : model.userArrays;
    const count = Number(queries);
    const asked = Array.from({ length: count }, (_, i) => ids[Math.floor((i * ids.length) / count)]);
    const indexed = await buildLists(model, given);
    const faiss = hasFaiss === '0' ? undefined : await openFaiss(model, indexed, given);
    if (!isSimilar) await model.prepare({ index: true });
    let exact: Answers | undefined;
    const measured = async (work: () => Promise<Answers>, isExact = false) => {
      const answers = await work();
      if (isExact) exact = answers;
      return { processor: answers.busy, clock: answers.milliseconds, 'recall@10': recallOf(exact, answers) };
    };
    const find = async (id: (typeof asked)[number], index: boolean | number) =>
      isSimilar
        ? (await model.similar(id, N, { index })).similar.map((found) => Number(found.item))
        : (await model.recommend(id, N, { index })).items.map(({ item }) => Number(item));
    const own = (index: boolean | number) => () => answersOf(asked, (id) => find(id, index));
    for (const probed of ['auto', ...probes.split(',').filter((one) => Number(one) < indexed)])
      yield {
        name: `${probed} lists`,
        engines: {
          exact: () => measured(own(false), true),
          lists: () => measured(own(probed === 'auto' ? true : Number(probed))),
          ...(faiss &&
            probed !== 'auto' && {
              'faiss flat': () => measured(() => faiss.ask(`flat ${probed}`)),
              'faiss sq8': () => measured(() => faiss.ask(`sq8 ${probed}`)),
            }),
        },
      };
    await faiss?.close();
  },
};
export default lists;

interface Answers {
  /** Milliseconds a query: of the processor, and on the clock. */
  readonly busy: number;
  readonly milliseconds: number;
  readonly items: readonly (readonly unknown[])[];
}

async function answersOf<Id>(asked: readonly Id[], find: (id: Id) => Promise<unknown[]>): Promise<Answers> {
  const items: unknown[][] = [];
  const [start, before] = [performance.now(), process.cpuUsage()];
  for (let from = 0; from < asked.length; from += AT_ONCE)
    items.push(...(await Promise.all(asked.slice(from, from + AT_ONCE).map(find))));
  const { user, system } = process.cpuUsage(before);
  const milliseconds = (performance.now() - start) / asked.length;
  return { busy: (user + system) / 1000 / asked.length, milliseconds, items };
}

function recallOf(exact: Answers | undefined, { items }: Answers): number {
  const all = exact?.items ?? [];
  return all.flatMap((list, i) => list.filter((item) => items[i].includes(item))).length / all.flat().length;
}

/** The number of lists of the model's index, which is built if it has none. */
async function buildLists(model: Model, { options }: Given): Promise<number> {
  const search = options.search as 'recommend' | 'similar';
  const wanted = options.lists === '' ? {} : { lists: Number(options.lists) };
  const built = model.indexed.includes(search)
    ? []
    : await model.buildIndex({ searches: [search], ...wanted });
  if (built.length > 0) console.error(`index of lists: ${JSON.stringify(built[0])}`);
  return built[0]?.lists ?? wanted.lists ?? Math.round(4 * Math.sqrt(model.itemCount));
}

/** A process that has the indexes of faiss. */
async function openFaiss(model: Model, lists: number, { options, scratch }: Given): Promise<EngineProcess> {
  const environment = resolve(import.meta.dirname, '../../build/faiss');
  const python = join(environment, 'bin/python');
  if (!existsSync(python)) {
    execFileSync('python3', ['-m', 'venv', environment]);
    execFileSync(python, ['-m', 'pip', 'install', '--quiet', ...VERSIONS], { stdio: 'inherit' });
  }
  const arrays = mkdtempSync(join(scratch, 'faiss-'));
  await model.exportFactors(arrays, { format: 'npy', overwrite: true });
  const numbers = [model.rank, lists, options.queries, N].map(String);
  const engine = pythonEngine(python, 'faiss-lists.py', [arrays, options.search, ...numbers], {
    OMP_NUM_THREADS: '1',
  });
  console.error(`faiss: ${JSON.stringify(await engine.answer<object>())}`);
  return engine;
}
