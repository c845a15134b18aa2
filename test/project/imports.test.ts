/**
 * The direction of imports that ARCHITECTURE.md draws, and what code that may run in a browser one day must
 * not touch.
 */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '../..');
const folders = [
  'browser',
  'cli',
  'api',
  'connectors',
  'synthetic',
  'operators',
  'engine',
  'cpu',
  'gpu',
] as const;

/** The folders that each folder may import from, beside itself. */
const allowed: Readonly<Record<string, readonly string[]>> = {
  'index.ts': ['api', 'connectors', 'operators', 'engine'],
  cli: ['index.ts', 'api'],
  api: ['connectors', 'synthetic', 'operators', 'engine', 'cpu', 'gpu'],
  browser: ['api', 'connectors', 'operators', 'engine', 'cpu', 'gpu'],
  connectors: ['engine'],
  synthetic: ['connectors', 'engine'],
  operators: ['engine'],
  cpu: ['engine'],
  gpu: ['engine'],
  engine: [],
};

/** The devices know the tasks of factorization by their types only, but for the layout of equations. */
const typeOnly = ['tasks', 'task-types'].map((name) => `operators/tasks/${name}.ts`);
const layout = 'operators/tasks/equation-tasks.ts';

/** Checks compare a GPU's results on the tasks' sample inputs with the CPU's, and kernels with their twins. */
const isCheck = (file: string) => file.startsWith('gpu/checks/') || file.endsWith('.check.ts');
const twins = ['cpu/', 'operators/tasks/sample'];

/**
 * Files below `api/` that the command line takes by themselves. --help must load neither Arrow nor WebGPU,
 * which `index.ts` would.
 */
const ofCommandLine: Readonly<Record<string, string>> = {
  'engine/errors.ts': 'errors, and paths without secrets',
  'engine/format.ts': 'figures as text',
  'engine/regular-file.ts': 'one way to read a small file whole',
  'engine/threads/collect-garbage.ts': 'memory of models that the server has replaced',
  'engine/values/plain-values.ts': 'one way from an Arrow value to a JavaScript value',
  'engine/events.ts': 'progress of what the command does itself',
  'connectors/files/file-problem.ts': 'one wording for what a file system refuses',
  'connectors/output/standard-output.ts': 'rows and messages share one stdout',
  'operators/params/param.ts': 'kinds of parameters, which flags follow from',
  'operators/params/table.ts': 'parameters of an algorithm, and rules among them',
  'operators/params/nearest-name.ts': 'names from other programs are those of the library too',
  'operators/als/params.ts': 'the parameters of ALS',
  'operators/sgd/params.ts': 'the parameters of SGD',
  'synthetic/dataset/generate-dataset.ts': 'generated ratings are no part of the api',
  'synthetic/copies/copy-dataset.ts': 'neither are copies of ratings',
};

/** The methods of rows give data sets, which are rows: types alone, so that nothing is loaded in a circle. */
const ofTypes = { file: 'api/rows.ts', target: 'api/dataset.ts' };

interface Import {
  readonly file: string;
  readonly target: string;
  readonly typesOnly: boolean;
  /** Loaded when it is needed: `import()`. */
  readonly isLazy: boolean;
}

const files = [
  'index.ts',
  ...folders.flatMap((folder) => globSync(`${folder}/**/*.ts`, { cwd: root })),
].filter((file) => !file.includes('/assembly/'));

function importsOf(file: string): Import[] {
  const source = readFileSync(join(root, file), 'utf8');
  const statement =
    /(?:^|\n)\s*(import|export)(\s+type)?\s[^;'"]*?from\s+['"]([^'"]+)['"]|import\(\s*['"]([^'"]+)['"]\s*\)|(?:^|\n)import\s+['"]([^'"]+)['"]/g;
  return [...source.matchAll(statement)].map(([, , type, from, lazy, alone]) => {
    const path = from ?? lazy ?? alone;
    const target = path.startsWith('.') ? relative(root, resolve(root, dirname(file), path)) : path;
    return { file, target, typesOnly: type !== undefined, isLazy: lazy !== undefined };
  });
}

const folderOf = (path: string) => (path === 'index.ts' ? path : path.split('/')[0]);
const imports = files.flatMap(importsOf);

describe('imports', () => {
  it('are found at all', () => {
    expect(imports.length).toBeGreaterThan(200);
  });

  it('go in one direction', () => {
    const wrong = imports.filter(({ file, target, typesOnly }) => {
      const [from, to] = [folderOf(file), folderOf(target)];
      if (!(folders as readonly string[]).includes(to) && to !== 'index.ts') return false;
      if (from === to || allowed[from].includes(to)) return false;
      if (from === 'cli' && target in ofCommandLine) return false;
      if (isCheck(file) && twins.some((twin) => target.startsWith(twin))) return false;
      if (target === layout && from === 'gpu') return false;
      return !(typesOnly && ['cpu', 'gpu'].includes(from) && typeOnly.includes(target));
    });
    expect(wrong).toEqual([]);
  });

  it('of the command line below the api are those named here, and each is needed', () => {
    const idle = Object.keys(ofCommandLine).filter(
      (door) => !imports.some(({ file, target }) => folderOf(file) === 'cli' && target === door),
    );
    expect(idle).toEqual([]);
  });

  it('make no circle', () => {
    const next = Map.groupBy(
      imports.filter(
        ({ isLazy, typesOnly, file, target }) =>
          !isLazy && !(typesOnly && file === ofTypes.file && target === ofTypes.target),
      ),
      ({ file }) => file,
    );
    const done = new Set<string>();
    const open: string[] = [];
    const circles: string[] = [];
    const visit = (file: string) => {
      if (open.includes(file)) circles.push([...open.slice(open.indexOf(file)), file].join(' -> '));
      if (open.includes(file) || done.has(file)) return;
      open.push(file);
      for (const { target } of next.get(file) ?? []) visit(target);
      done.add(open.pop() ?? '');
    };
    for (const file of next.keys()) visit(file);
    expect(done).toContain('cli/commands/train.ts');
    expect(circles).toEqual([]);
  });

  it('of the entry for pages reach neither Node nor packages of Node', () => {
    const reached = new Set(['browser/index.ts']);
    const packages = new Set<string>();
    for (const file of reached)
      for (const { target, typesOnly } of imports.filter((one) => one.file === file)) {
        if (typesOnly) continue;
        if (folderOf(target) === 'index.ts' || (folders as readonly string[]).includes(folderOf(target)))
          reached.add(target);
        else packages.add(target);
      }
    expect(reached.size).toBeGreaterThan(50);
    expect([...packages].sort()).toEqual([
      'hyparquet/src/indexes.js',
      'hyparquet/src/metadata.js',
      'hyparquet/src/scan.js',
      'hyparquet/src/thrift.js',
      'liquidjs',
    ]);
  });

  it('of operators and kernels name no module of Node', () => {
    const isHost = (file: string) =>
      /^(cpu|gpu)\/(worker|device)\.ts$|^cpu\/(read|write)-spilled\.ts$/.test(file) ||
      file === 'gpu/update/choice/tuner-cache.ts' ||
      file === 'gpu/webgpu/acquire.ts' ||
      file.startsWith('gpu/exchange/') ||
      file.startsWith('gpu/probe/') ||
      file.startsWith('gpu/cards/');
    const wrong = imports.filter(
      ({ file, target }) =>
        ['operators', 'cpu', 'gpu'].includes(folderOf(file)) && target.startsWith('node:') && !isHost(file),
    );
    expect(wrong).toEqual([]);
  });

  it('of the engine know nothing of ratings, Parquet or shaders', () => {
    const packages = new Set(
      imports
        .filter(({ file, target }) => folderOf(file) === 'engine' && !target.startsWith('engine/'))
        .map(({ target }) => target),
    );
    expect([...packages].sort()).toEqual([
      'apache-arrow',
      'cli-table3',
      'node:fs',
      'node:v8',
      'node:vm',
      'piscina',
      're2js',
    ]);
  });
});
