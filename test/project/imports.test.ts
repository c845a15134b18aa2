/**
 * The direction of imports that ARCHITECTURE.md draws, and what code that may run in a browser one day must
 * not touch.
 */
import { globSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '../..');
const folders = ['cli', 'api', 'connectors', 'synthetic', 'operators', 'engine', 'cpu', 'gpu'] as const;

/** The folders that each folder may import from, beside itself. */
const allowed: Readonly<Record<string, readonly string[]>> = {
  'index.ts': ['api', 'connectors', 'operators', 'engine'],
  cli: ['index.ts', 'api'],
  api: ['connectors', 'synthetic', 'operators', 'engine', 'cpu', 'gpu'],
  connectors: ['engine'],
  synthetic: ['connectors', 'engine'],
  operators: ['engine'],
  cpu: ['engine'],
  gpu: ['engine'],
  engine: [],
};

/** The devices know the tasks of factorization by their types only. */
const typeOnly = ['tasks', 'task-types'].map((name) => `operators/tasks/${name}.ts`);

/** Checks compare a GPU's kernels with their twins on the CPU. */
const isCheck = (file: string) => file.startsWith('gpu/checks/');
const twins = 'cpu/reference/';

/**
 * Files below `api/` that the command line takes by themselves. --help must load neither Arrow nor WebGPU,
 * which `index.ts` would: so names, defaults and errors come from the files that hold them.
 */
const ofCommandLine: readonly {
  readonly from: string;
  readonly to: readonly string[];
  readonly because: string;
}[] = [
  {
    from: 'cli/main.ts',
    to: ['engine/node-version.ts'],
    because: 'a Node that is too old may not load more',
  },
  {
    from: 'cli/keep-compiled.ts',
    to: ['gpu/probe/cache-folder.ts'],
    because: 'the folder for caches is known before the api is loaded',
  },
  {
    from: 'cli/',
    to: ['engine/errors.ts', 'engine/format.ts', 'engine/json.ts'],
    because: 'errors, figures as text and the type of JSON load nothing else',
  },
  {
    from: 'cli/',
    to: ['connectors/files/file-problem.ts'],
    because: 'one wording for what a file system refuses',
  },
  {
    from: 'cli/options/',
    to: ['operators/als/params.ts', 'operators/sgd/params.ts', 'operators/params/table.ts'],
    because: 'defaults and choices that --help prints',
  },
  {
    from: 'cli/options/nearest.ts',
    to: ['operators/params/nearest-name.ts'],
    because: 'names from other programs are those of the library too',
  },
  {
    from: 'cli/options/data/split-options.ts',
    to: ['operators/ratings/rows/time-in.ts'],
    because: 'the date of a flag is read as dates of ratings are',
  },
  {
    from: 'cli/commands/data/generate.ts',
    to: [
      'synthetic/preset.ts',
      'synthetic/any-shape.ts',
      'synthetic/dataset/generate-dataset.ts',
      'synthetic/copies/copy-dataset.ts',
    ],
    because: 'generated ratings are no part of the api',
  },
  {
    from: 'cli/commands/tune.ts',
    to: ['connectors/model/model-store.ts'],
    because: "the model's folder is checked before the work",
  },
  {
    from: 'cli/sessions/run-training.ts',
    to: ['connectors/model/model-store.ts'],
    because: "the model's folder is checked before the work",
  },
  {
    from: 'cli/output/',
    to: [
      'connectors/open-sink.ts',
      'connectors/files/path-kinds.ts',
      'connectors/files/patterns.ts',
      'connectors/output/checked-sink.ts',
      'connectors/output/temporaries.ts',
    ],
    because: 'an output is opened and checked before the work, and written after it',
  },
  {
    from: 'cli/page/',
    to: ['operators/evaluation/error-bins.ts', 'connectors/output/byte-output.ts'],
    because: 'a page counts ratings by degree, and is written whole or not at all',
  },
  {
    from: 'cli/report/inspect',
    to: [
      'connectors/files/dataset-path.ts',
      'connectors/files/format-names.ts',
      'connectors/files/path-kinds.ts',
      'connectors/http/stream-url.ts',
      'engine/stream/logical-plan.ts',
      'operators/evaluation/rating-warnings.ts',
      'operators/ratings/profile-ratings.ts',
      'operators/ratings/rows/bad-rows.ts',
      'operators/ratings/rows/select-ratings.ts',
    ],
    because: 'inspect counts files and ratings, which the api does not',
  },
  {
    from: 'cli/sessions/trials-file.ts',
    to: [
      'connectors/files/dataset-path.ts',
      'connectors/files/format-names.ts',
      'connectors/files/path-kinds.ts',
    ],
    because: 'a search knows its files again by their sizes and times',
  },
  {
    from: 'cli/sessions/training-sets.ts',
    to: ['operators/ratings/rows/select-ratings.ts'],
    because: 'columns are checked before a device is used',
  },
  {
    from: 'cli/sessions/plan-of-problem.ts',
    to: [
      'engine/run/devices.ts',
      'operators/planner/algorithm-choice.ts',
      'operators/planner/assumed-devices.ts',
      'operators/planner/profile.ts',
      'operators/als/params.ts',
      'operators/als/plan/plan-als.ts',
      'operators/als/kernel-choices.ts',
      'operators/sgd/params.ts',
      'operators/sgd/plan.ts',
      'operators/training/planned-checkpoints.ts',
    ],
    because: 'the api plans ratings, not counts alone',
  },
  {
    from: 'cli/signals.ts',
    to: ['connectors/output/temporaries.ts', 'engine/threads/endings.ts', 'engine/waits.ts'],
    because: 'a process that is stopped leaves nothing behind',
  },
  {
    from: 'cli/worker/',
    to: ['engine/threads/worker-file.ts', 'connectors/spill/spill-folder.ts'],
    because: 'stdin is read by a thread, which removes files before it kills the process',
  },
  {
    from: 'cli/doctor/',
    to: [
      'synthetic/preset.ts',
      'synthetic/presets.ts',
      'synthetic/synthetic-source.ts',
      'engine/phase.ts',
      'operators/als/params.ts',
    ],
    because: 'the doctor looks at devices and kernels themselves',
  },
  {
    from: 'cli/commands/doctor.ts',
    to: ['gpu/probe/probe-webgpu.ts', 'gpu/probe/explain-probe.ts'],
    because: 'the doctor asks for a GPU without opening it',
  },
];

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
      if (ofCommandLine.some((rule) => file.startsWith(rule.from) && rule.to.includes(target))) return false;
      if (isCheck(file) && target.startsWith(twins)) return false;
      return !(typesOnly && ['cpu', 'gpu'].includes(from) && typeOnly.includes(target));
    });
    expect(wrong).toEqual([]);
  });

  it('of the command line below the api are those named here, and each is needed', () => {
    const idle = ofCommandLine.flatMap((rule) =>
      rule.to
        .filter((to) => !imports.some(({ file, target }) => file.startsWith(rule.from) && target === to))
        .map((to) => `${rule.from} -> ${to}`),
    );
    expect(idle).toEqual([]);
  });

  it('make no circle', () => {
    const next = Map.groupBy(
      imports.filter(({ isLazy }) => !isLazy),
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

  it('of operators and kernels name no module of Node', () => {
    const isHost = (file: string) =>
      /^(cpu|gpu)\/(worker|device)\.ts$|^cpu\/(read|write)-spilled\.ts$/.test(file) ||
      file === 'gpu/update/choice/tuner-cache.ts' ||
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
    expect([...packages].sort()).toEqual(['apache-arrow', 'cli-table3', 'node:v8', 'node:vm', 'piscina']);
  });
});
