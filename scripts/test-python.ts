/**
 * The tests of the Python package: `npm run test:python [-- WORDS OF pytest]`. Builds the wheel, installs it
 * with the packages of test/python/requirements.txt below build/python, and runs test/python. Without Python
 * it prints that and runs nothing; the same without network, unless everything is installed already.
 */
import { spawnSync } from 'node:child_process';
import { join, resolve } from 'node:path';
import { environment, hasPython, notRun, runner } from './optional-tests.ts';
import { buildOwnWheel } from './python-artifacts.ts';

const root = resolve(import.meta.dirname, '..');
const work = join(root, 'build/python');
const tests = 'the tests of the Python package';

if (!hasPython([3, 11])) notRun(tests, 'there is no Python 3.11 or newer with venv');
const run = runner(tests);
const wheel = buildOwnWheel(run, join(work, 'wheel'));
const requirements = join(root, 'test/python/requirements.txt');
const python = environment(run, join(work, 'environment'), requirements, wheel);
const { status } = spawnSync(
  python,
  ['-m', 'pytest', '-q', '--no-header', '-p', 'no:cacheprovider', ...process.argv.slice(2)],
  {
    cwd: join(root, 'test/python'),
    stdio: 'inherit',
    env: {
      ...process.env,
      FACTORFLOW_MAIN: undefined,
      FACTORFLOW_NODE: process.execPath,
      PYTHONDONTWRITEBYTECODE: '1',
    },
  },
);
process.exitCode = status ?? 1;
