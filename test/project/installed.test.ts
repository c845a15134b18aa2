/**
 * The packed package in a project of its own, installed without optional packages: what it holds, loads, says
 * and declares. `npm test` takes this Node and the newest TypeScript, `npm run test:deep` also the oldest ones.
 */
import { execFile } from 'node:child_process';
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, relative, resolve } from 'node:path';
import { promisify } from 'node:util';
import { build } from 'vite';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { isDeep } from '../support/deep.ts';
import { oldestNode } from '../support/oldest-node.ts';

const root = resolve(import.meta.dirname, '../..');
const project = mkdtempSync(join(tmpdir(), 'factorflow-project-'));
const modules = join(project, 'node_modules');
const installed = join(modules, 'factorflow');
const nodes = {
  'this Node': process.execPath,
  ...(isDeep && { 'the oldest Node': (await oldestNode()).path }),
};
const run = promisify(execFile);

interface Ended {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/** Runs a program in the project to its end, also to a bad one. */
async function ended(program: string, ...args: readonly string[]): Promise<Ended> {
  return run(program, args, { cwd: project }).then(
    ({ stdout, stderr }) => ({ code: 0, stdout, stderr }),
    ({ code, stdout, stderr }: Ended) => ({ code, stdout, stderr }),
  );
}

beforeAll(async () => {
  const { stdout } = await run('npm', ['pack', '--ignore-scripts', '--json', '--pack-destination', project], {
    cwd: root,
    maxBuffer: 2 ** 26,
  });
  const [{ filename }] = JSON.parse(stdout) as [{ readonly filename: string }];
  mkdirSync(installed, { recursive: true });
  await run('tar', ['-xzf', join(project, filename), '-C', installed, '--strip-components=1']);
  rmSync(join(project, filename));
  // At the versions of the lock, side by side: what this project nests below one of them for its own sake
  // alone is not nested there.
  for (const path of dependencies())
    cpSync(
      join(root, path),
      join(modules, path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length)),
      { recursive: true },
    );
  writeFileSync(join(project, 'package.json'), '{ "private": true, "type": "module" }\n');
});
afterAll(() => rmSync(project, { recursive: true, force: true }));

/** Folders of the packages that an installation without optional ones brings. */
function dependencies(): string[] {
  const { packages } = JSON.parse(readFileSync(join(root, 'package-lock.json'), 'utf8')) as {
    readonly packages: Readonly<Record<string, Readonly<Record<string, boolean>>>>;
  };
  return Object.entries(packages)
    .filter(([path, { dev, optional, devOptional }]) => path !== '' && !dev && !optional && !devOptional)
    .map(([path]) => path);
}

describe('the package', () => {
  const names = () =>
    globSync('**/*', { cwd: installed }).filter((path) => statSync(join(installed, path)).isFile());

  it('holds what it refers to, and nothing of the build', () => {
    expect(names()).toEqual(
      expect.arrayContaining([
        'README.md',
        'LICENSE',
        'CHANGELOG.md',
        'dist/programs/index.js',
        'dist/page/index.js',
        'dist/page/page-gpu.js',
        'dist/page/page-worker.js',
        'dist/types/index.d.ts',
        'docs/README.md',
        'examples/01-train.ts',
      ]),
    );
    expect(names().filter((path) => /\.map$|tsbuildinfo|^(test|bench|scripts)\//.test(path))).toEqual([]);
    const sourceOf = (path: string) => path.replace(/^dist\/(.*)\.js$/, '$1.ts');
    const mapped = names().filter(
      (path) =>
        existsSync(join(root, sourceOf(path))) &&
        readFileSync(join(installed, path), 'utf8').includes('sourceMappingURL='),
    );
    expect(mapped).toEqual([]);
  });

  it('holds no module that a bundle has already, and a file of declarations for each entry', () => {
    expect(
      names().filter((path) =>
        /^dist\/(?!programs\/)(?!.*\/generated\/)(?!page\/[\w-]+\.js$).*\.js$/.test(path),
      ),
    ).toEqual([]);
    const declared = names().filter((path) => /\.d\.[cm]?ts$/.test(path));
    expect(declared.sort()).toEqual(['arrow', 'browser', 'index'].map((entry) => `dist/types/${entry}.d.ts`));
  });

  it('has no dead links', () => {
    const pages = names().filter((path) => path.endsWith('.md'));
    expect(pages.length).toBeGreaterThan(10);
    const links = pages.flatMap((page) =>
      [...readFileSync(join(installed, page), 'utf8').matchAll(/\]\((?![a-z]+:|#)([^)\s#]+)/g)].map(
        ([, link]) => ({ page, target: relative(installed, resolve(installed, dirname(page), link)) }),
      ),
    );
    expect(links.length).toBeGreaterThan(30);
    expect(links.filter(({ target }) => !existsSync(join(installed, target)))).toEqual([]);
  });

  it('takes less than 41 MB with all that it needs', () => {
    for (const optional of ['webgpu', 'fastify']) expect(existsSync(join(modules, optional))).toBe(false);
    // In blocks of 4 KiB, as a disk keeps them.
    const bytes = globSync('**/*', { cwd: modules, withFileTypes: true }).reduce(
      (sum, entry) => sum + Math.ceil(statSync(join(entry.parentPath, entry.name)).size / 4096) * 4096,
      0,
    );
    expect(bytes / 1e6).toBeLessThan(41);
  });
});

describe.each(Object.entries(nodes))(`on %s`, (_, node) => {
  const body =
    "const session = await Session.create({ workers: 1 }); const ratings = session.read.parquet('node_modules/factorflow/examples/data/movietweetings-100k/ratings.parquet'); const model = await new ALS({ rank: 2, maxIter: 1 }).fit(ratings); console.log(model.userCount, session.device.kind); await session.close();";

  it('is imported and required, and the two are one', async () => {
    writeFileSync(join(project, 'imports.mjs'), `import { ALS, Session } from 'factorflow'; ${body}`);
    writeFileSync(
      join(project, 'requires.cjs'),
      `const { ALS, Session } = require('factorflow'); (async () => { ${body} console.log((await import('factorflow')).ALS === ALS); })();`,
    );
    expect(await ended(node, 'imports.mjs')).toMatchObject({ code: 0, stdout: '16554 cpu\n' });
    expect(await ended(node, 'requires.cjs')).toMatchObject({ code: 0, stdout: '16554 cpu\ntrue\n' });
  });

  it('takes batches of the copy of Arrow that it exports', async () => {
    writeFileSync(
      join(project, 'arrow.mjs'),
      `import { Session } from 'factorflow'; import { tableFromArrays } from 'factorflow/arrow';
       const session = await Session.create({ workers: 1 });
       console.log(await session.from(tableFromArrays({ user: [1, 2], item: [3, 4] }).batches).count());
       await session.close();`,
    );
    expect(await ended(node, 'arrow.mjs')).toMatchObject({ code: 0, stdout: '2\n' });
  });

  it('says how to add the package for GPUs that was left out', async () => {
    const command = join(installed, 'dist/programs/cli/main.js');
    const doctor = await ended(node, command, 'doctor');
    expect(doctor).toMatchObject({
      code: 0,
      stdout: expect.stringMatching(
        /webgpu +not installed\n(.|\n)*The package webgpu, which GPUs need, is missing in this installation\. Add it with npm install webgpu@0/,
      ),
    });
    const { optionalDependencies } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8')) as {
      readonly optionalDependencies: Readonly<Record<string, string>>;
    };
    const release = /npm install webgpu@(\d+\.\d+),/.exec(doctor.stdout)?.[1];
    expect(optionalDependencies.webgpu).toMatch(new RegExp(`^\\^${release}\\.`));
    const message = /no GPU: the package webgpu is not installed\. .*npm install webgpu@.* Or use device cpu/;
    expect(
      await ended(node, command, 'plan', '--users', '9', '--items', '9', '--ratings', '9', '--device', 'gpu'),
    ).toMatchObject({ code: 2, stderr: expect.stringMatching(message) });
    expect(
      await ended(
        node,
        '--input-type=module',
        '-e',
        "import { Session } from 'factorflow'; await Session.create({ device: 'gpu' })",
      ),
    ).toMatchObject({ code: 1, stderr: expect.stringMatching(message) });
  });
});

describe('on a Node that is too old', () => {
  const older = `data:text/javascript,${encodeURIComponent("Object.defineProperty(process, 'versions', { value: { ...process.versions, node: '20.11.0' } })")}`;
  const message =
    /factorflow needs Node 22\.12 or newer, and this is 20\.11\.0\. Install a newer one from https:\/\/nodejs\.org, or give your project its own: after npm install node@24, npx and npm scripts there run with it\n/i;

  it('the command, an import and a require say the same', async () => {
    expect(
      await ended(
        process.execPath,
        '--import',
        older,
        join(installed, 'dist/programs/cli/main.js'),
        'doctor',
      ),
    ).toMatchObject({ code: 2, stderr: expect.stringMatching(message) });
    expect(
      await ended(process.execPath, '--import', older, '--input-type=module', '-e', "import 'factorflow'"),
    ).toMatchObject({ code: 1, stderr: expect.stringMatching(message) });
    expect(
      await ended(
        process.execPath,
        '--import',
        older,
        '--input-type=commonjs',
        '-e',
        "require('factorflow')",
      ),
    ).toMatchObject({ code: 1, stderr: expect.stringMatching(message) });
  });

  it('the command loads nothing but the check before it has looked', () => {
    const programs = join(installed, 'dist/programs/cli');
    const importsOf = (file: string) =>
      [...readFileSync(file, 'utf8').matchAll(/\bfrom ?"([^"]+)"/g)].map(([, path]) => path);
    const before = importsOf(join(programs, 'main.js'));
    expect(before).toEqual([expect.stringMatching(/^\.\.\/chunks\/node-version-/), 'node:os']);
    expect(importsOf(join(programs, before[0]))).toEqual([]);
  });
});

describe('a bundle', () => {
  const bundled = async (name: string, inside: boolean) => {
    await build({
      root: project,
      configFile: false,
      logLevel: 'error',
      ssr: inside ? { noExternal: ['factorflow'] } : {},
      build: { ssr: 'imports.mjs', outDir: name, minify: false, rolldownOptions: { onLog: () => {} } },
    });
    return ended(process.execPath, join(name, 'imports.js'));
  };

  it('by Vite leaves the package outside, and runs', async () => {
    expect(await bundled('outside', false)).toMatchObject({ code: 0, stdout: '16554 cpu\n' });
  });

  it('that has swallowed the package says what to do', async () => {
    expect(await bundled('inside', true)).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /UsageError: FactorFlow was put into a bundle.*external: \['factorflow'\] .*docs\/bundlers\.md/,
      ),
    });
  });
});

describe('its types', () => {
  const program = `import { ALS, CancelledError, type Dataset, type EarlyStopMetric, type Model, type Operator, Session, type SessionOptions, SGD, type TuningMetric } from 'factorflow';
import { type RecordBatch, tableFromArrays } from 'factorflow/arrow';
export const batches: readonly RecordBatch[] = tableFromArrays({ user: Int32Array.of(1) }).batches;
export async function trained(paths: string[], signal: AbortSignal): Promise<Model> {
  const session = await Session.create({ device: 'auto', memoryBudget: '1GiB' });
  const ratings: Dataset = session.read.parquet(paths);
  const [train, test] = ratings.randomSplit([0.9, 0.1], { seed: 1 });
  const model = await new ALS({ rank: 8, regParam: 0.1 }).fit(train, { validation: test, signal, onEvent: (event) => { if (event.type === 'iteration') console.log(event.testRmse?.toFixed(3)); } });
  for await (const batch of model.recommendForUsers([1], 3)) console.log(batch.numRows, batch.schema.fields.length);
  const { rmse }: { rmse: number } = await model.evaluate(test);
  if (rmse > 2) throw new CancelledError();
  return model;
}
export const trainer: SGD = new SGD({ rank: 4 });
export type Mine = Operator;
// @ts-expect-error A parameter is a number.
new ALS({ rank: 'eight' });
new ALS({ earlyStop: 2, earlyStopMetric: 'ndcg@20' });
// @ts-expect-error No metric of this name.
new ALS({ earlyStop: 2, earlyStopMetric: 'ndgc@20' });
export const metric: TuningMetric = 'mrr';
// @ts-expect-error A metric of lists needs its k.
export const without: EarlyStopMetric = 'recall';
// @ts-expect-error An internal option.
export const internal: SessionOptions = { fakeDevices: 2 };
`;

  // Without skipLibCheck, so that the declarations of the package and of its dependencies are checked too.
  it.each([
    ['typescript', ['--module', 'nodenext']],
    ['typescript', ['--module', 'esnext', '--moduleResolution', 'bundler']],
    ...(isDeep ? ['typescript-5.9', 'typescript-5.4'] : []).map(
      (older) => [older, ['--module', 'nodenext']] as const,
    ),
  ] as const)(
    'compile under the strictest settings with %s %j',
    async (compiler, flags) => {
      writeFileSync(join(project, 'program.ts'), program);
      const { code, stdout } = await ended(
        process.execPath,
        join(root, 'node_modules', compiler, 'bin/tsc'),
        '--noEmit',
        '--strict',
        '--exactOptionalPropertyTypes',
        '--noImplicitOverride',
        '--noImplicitReturns',
        '--noPropertyAccessFromIndexSignature',
        '--noUncheckedIndexedAccess',
        '--isolatedModules',
        '--verbatimModuleSyntax',
        '--target',
        'es2022',
        ...flags,
        'program.ts',
      );
      expect(stdout).toBe('');
      expect(code).toBe(0);
    },
    120_000,
  );
});
