import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { tooOldNode } from '../../api/node-version.ts';
import { nearestFlag, flagName } from '../../cli/options/option.ts';
import { barText, endText, type PhaseState, startText } from '../../cli/progress/phrases.ts';
import { reportError } from '../../cli/report/report-error.ts';
import { fileProblem } from '../../connectors/files/file-problem.ts';
import { CapacityError, DataError, UsageError } from '../../engine/errors.ts';
import { counted } from '../../engine/format.ts';
import { explainProbe } from '../../gpu/probe/probe-webgpu.ts';
import { argv, factorflow, ratings, start, fails, objectOf, quick } from './run-cli.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { trainOptions } from '../../cli/options/training/training-options.ts';
import { nameFlags } from '../../cli/report/name-flags.ts';
import { shownName } from '../../cli/report/facts.ts';
import { shownText } from '../../connectors/output/byte-output.ts';

describe('an error', () => {
  it('of ours has no stack and keeps its exit code', () => {
    expect(reportError(new CapacityError('too much', { advice: 'Use less' }))).toEqual({
      message: 'too much. Use less',
      text: 'factorflow: too much. Use less',
      code: 'CAPACITY',
      exitCode: 4,
    });
  });

  it.each([
    [new RangeError('Array buffer allocation failed'), 4, /out of memory/],
    [new RangeError('Invalid typed array length: 99'), 4, /out of memory/],
    [
      Object.assign(new Error('ENOSPC: no space left on device, write'), { code: 'ENOSPC' }),
      4,
      /disk is full/,
    ],
    [
      Object.assign(new Error('ENOENT'), { code: 'ENOENT', path: '/x', syscall: 'open' }),
      3,
      /no such file or folder \(\/x\)/,
    ],
    [
      Object.assign(new Error('EROFS'), { code: 'EROFS', path: '/x', syscall: 'mkdir' }),
      3,
      /read-only \(\/x\)/,
    ],
    [
      Object.assign(new Error('EACCES'), { code: 'EACCES', path: '/x', syscall: 'open' }),
      3,
      /permission denied \(\/x\)/,
    ],
    [
      Object.assign(new Error('EIO: i/o error, read'), { code: 'EIO', syscall: 'read' }),
      3,
      /the system refuses: EIO: i\/o error, read/,
    ],
    [
      Object.assign(new Error('EIO: i/o error, open'), { code: 'EIO', path: '/x', syscall: 'open' }),
      3,
      /the disk or its server reports an error \(EIO\) \(\/x\)/,
    ],
  ])('of the system becomes one of ours: %s', (error, exitCode, pattern) => {
    const report = reportError(error);
    expect(report.exitCode).toBe(exitCode);
    expect(report.text).toMatch(pattern);
    expect(report.text).not.toContain('    at ');
  });

  it('of any other kind has its stack and the address for reports', () => {
    const { text, exitCode } = reportError(new TypeError('x is undefined'));
    expect(exitCode).toBe(1);
    expect(text).toMatch(/^factorflow: internal error: TypeError: x is undefined\n +at /);
    expect(text).toMatch(/https:\/\/github\.com\/\S+\/issues$/);
  });
});

describe('one of something', () => {
  it('is said in the singular', () => {
    const state: PhaseState = {
      phase: 'read',
      done: 1,
      total: 1,
      estimated: false,
      unit: 'ratings',
      seconds: 1,
      ended: true,
    };
    expect(startText(state)).toBe('read: started, 1 rating');
    expect(endText(state)).toBe('read: finished, 1 rating in 1.00 s (1.0 ratings/s)');
    expect(barText({ ...state, total: undefined }, 10)).toMatch(/^read +1 rating /);
    expect([counted(0, 'row group'), counted(1, 'row group'), counted(1234, 'row group')]).toEqual([
      '0 row groups',
      '1 row group',
      '1,234 row groups',
    ]);
  });

  it('in a whole training', async () => {
    const folder = mkdtempSync(join(tmpdir(), 'factorflow-one-'));
    try {
      writeFileSync(join(folder, 'one.csv'), 'user,item,rating\n1,1,5\n');
      const { code, stdout, stderr } = await factorflow(
        ...argv`train ${join(folder, 'one.csv')} --model-dir ${join(folder, 'model')} --max-iter 1
        --rank 1 --workers 1 --device cpu`,
      );
      expect(code).toBe(0);
      expect(`${stdout}${stderr}`).not.toMatch(
        /(?<![\d.,])1 (\w+ )?(ratings|rows|users|items|iterations|threads|files|pairs)\b/,
      );
      expect(stderr).toMatch(/: 1 thread, /);
      expect(stderr).toContain('finished, 1 iteration in');
    } finally {
      rmSync(folder, { recursive: true, force: true });
    }
  });
});

describe('a missing adapter', () => {
  it.each([
    [
      { failure: 'no adapter', messages: "Warning: Couldn't load Vulkan: libvulkan.so.1: cannot open" },
      /Vulkan loader is missing.*libvulkan1/,
    ],
    [{ failure: 'no adapter', messages: '' }, /no driver of a graphics card/],
    [{ failure: 'timeout', messages: '' }, /did not answer within 20 seconds/],
    [{ failure: 'crash', ending: 'SIGSEGV', messages: 'boom' }, /crashed \(SIGSEGV\). It said: boom/],
    [
      { failure: 'not installed', messages: '' },
      /webgpu, which GPUs need, is missing in this installation\. Add it with npm install webgpu@\d/,
    ],
    [
      {
        failure: 'error',
        ending: 'exit code 1',
        messages: "Error [ERR_MODULE_NOT_FOUND]: Cannot find module './linux-x64.node'",
      },
      /binary of the package webgpu.*Install it again with npm install webgpu@\d/,
    ],
    [
      {
        failure: 'error',
        ending: 'exit code 1',
        messages: 'Error: libfoo.so: cannot open shared object file',
      },
      /does not load here: Error: libfoo/,
    ],
  ] as const)('is explained in words: %j', (outcome, pattern) => {
    expect(explainProbe(outcome, 'linux')).toMatch(pattern);
    expect(explainProbe(outcome, 'linux')).toMatch(
      /^nothing to do for the CPU, which is used here; for a GPU: /,
    );
  });

  it('is not reported where another one computes', () => {
    const adapter = { name: 'card', vendor: 'v', architecture: 'a', isFallback: false, features: [] };
    expect(explainProbe({ adapter, messages: '' }, 'linux')).toBeUndefined();
    expect(explainProbe({ adapter: { ...adapter, isFallback: true }, messages: '' }, 'linux')).toMatch(
      /computes on the processor/,
    );
  });
});

describe('help for slips', () => {
  it('finds near words only', () => {
    expect(nearestFlag('rnak', ['rank', 'seed'])).toBe('rank');
    expect(nearestFlag('biases', ['rank', 'seed'])).toBeUndefined();
  });

  it.each([
    ['model', 'modelDir'],
    ['lambda', 'regParam'],
    ['regularization', 'regParam'],
    ['iterations', 'maxIter'],
    ['epochs', 'maxIter'],
    ['factors', 'rank'],
    ['implicit-prefs', 'implicitPrefs'],
    ['titles', 'itemNames'],
    ['output', 'modelDir'],
    ['top', 'n'],
  ])('knows the names of other programs: %s', (word, key) => {
    const keys = ['user', 'modelDir', 'regParam', 'maxIter', 'rank', 'implicitPrefs', 'itemNames', 'n'];
    expect(nearestFlag(word, keys)).toBe(key);
    expect(nearestFlag(word, keys.map(flagName))).toBe(flagName(key));
  });

  it('names the flag of a permission that Node refuses', () => {
    const refused = (permission: string, resource?: string) =>
      Object.assign(new Error('Access to this API has been restricted'), {
        code: 'ERR_ACCESS_DENIED',
        permission,
        resource,
      });
    expect(reportError(refused('WorkerThreads'))).toMatchObject({
      exitCode: 2,
      message: expect.stringMatching(/refuses the access WorkerThreads. Add --allow-worker to/) as string,
    });
    expect(fileProblem(refused('FileSystemRead', '/data/a.csv'), 'read', 'a.csv')).toMatchObject({
      exitCode: 2,
      message: expect.stringMatching(/FileSystemRead \(\/data\/a.csv\)\. Add --allow-fs-read=PATH/) as string,
    });
  });

  it.skipIf(process.platform === 'win32')(
    'names what a strange start lacks, and works where it can',
    async () => {
      const within = (shell: string) => ['sh', '-c', `${shell} exec "$@"`, 'sh'];
      const jitless = await start(['inspect', ratings], { nodeArgs: ['--jitless'] }).outcome;
      expect(jitless).toMatchObject({
        code: 2,
        stderr: expect.stringMatching(/^factorflow needs WebAssembly, .*--jitless/) as string,
      });
      const folder = within('exec < /tmp;');
      const stdin = await start(['convert', '-', '-', '--from', 'csv', '--to', 'csv'], { within: folder })
        .outcome;
      expect(stdin).toMatchObject({
        code: 3,
        stderr: expect.stringMatching(/this is a folder .*\(stdin\)\. Name the folder/) as string,
      });
      const removed = within('folder=$(mktemp -d); cd "$folder"; rmdir "$folder";');
      expect(await start(['inspect', ratings, '--quiet'], { within: removed }).outcome).toMatchObject({
        code: 0,
      });
      expect(await start(['inspect', 'ratings.csv'], { within: removed }).outcome).toMatchObject({ code: 3 });
    },
  );

  it('names the Node that is needed', () => {
    expect(tooOldNode('20.1.0')).toMatch(
      /^needs Node 22\.12 or newer, and this is 20\.1\.0\. .*nodejs\.org, or give your project its own: after npm install node@24, npx/,
    );
    expect(tooOldNode('22.12.0')).toBeUndefined();
    expect(tooOldNode('24.0.0')).toBeUndefined();
  });
});

describe('options of the library in a message', () => {
  it.each([
    ['Raise regParam (λ), which is 0.1', 'Raise --reg-param (λ), which is 0.1'],
    ['Lower learningRate, or raise regParamUsers', 'Lower --learning-rate, or raise --reg-param-users'],
    ["Leave such rows out with onBadRows: 'skip'", 'Leave such rows out with --on-bad-rows skip'],
    ['Replace it with overwrite: true', 'Replace it with --force'],
    ['Leave such rows out with onBadRows: "skip"', 'Leave such rows out with --on-bad-rows skip'],
    ["Use device: 'cpu', rank: 64, solver: 'cg'", 'Use --device cpu, --rank 64, --solver cg'],
    ['Set the option format: csv, tsv', 'Set --format: csv, tsv'],
    ['Name them: { userCol, itemCol }', 'Name them: --user-col, --item-col'],
    ['Pass one with the option validation', 'Pass one with --test'],
    ["Give types: { movieId: 'int64' }, onBadRows: 'skip'", 'Give --types movieId=int64, --on-bad-rows skip'],
    [`Give types: { "movie id": 'int64' }`, "Give --types 'movie id=int64'"],
    ["the model's coldStartStrategy: 'drop'", "the model's --cold-start drop"],
  ])('%s', (text, shown) => {
    expect(nameFlags(text, trainOptions)).toBe(shown);
  });

  it.each([
    'the rank of the model is 4, and a test of format needs a seed',
    'there is no column "userCol"; there are: user (Int32)',
    'Raise --reg-param (regParam)',
    'als.regParam, params/maxIter, maxIterations',
    String.raw`line 3: the row has no seed: "1,regParam,\"maxIter: 3\",x"`,
  ])('stays as it is: %s', (text) => {
    expect(nameFlags(text, trainOptions)).toBe(text);
  });

  it('stays as it is for a command without that flag', () => {
    expect(nameFlags('Raise regParam, or pass overwrite: true', {})).toBe(
      'Raise regParam, or pass overwrite: true',
    );
  });

  it('is named in summary and advice, and never in the place', () => {
    const error = new DataError('userCol and itemCol are alike', {
      phase: 'read',
      file: 'maxIter.csv',
      column: 'ratingCol',
      advice: 'Give another itemCol',
    });
    expect(reportError(error, trainOptions)).toEqual({
      message:
        'read: --user-col and --item-col are alike (maxIter.csv, column "ratingCol"). Give another --item-col',
      text: 'factorflow: read: --user-col and --item-col are alike (maxIter.csv, column "ratingCol"). Give another --item-col',
      code: 'DATA',
      exitCode: 3,
    });
    expect(reportError(new UsageError('regParam must be a number'))).toMatchObject({
      message: 'regParam must be a number',
      exitCode: 2,
    });
  });
});

describe('a name in a table', () => {
  it('is one line of at most 60 characters, and nothing without a name', () => {
    expect(shownName('Alien\n\t(1979)')).toBe('Alien (1979)');
    expect(shownName('\u{1F600}'.repeat(70))).toBe(`${'\u{1F600}'.repeat(59)}…`);
    expect([shownName(null), shownName(undefined)]).toEqual(['', '']);
  });

  it('neither acts on the terminal nor turns what follows around', () => {
    expect(shownName('\u001b[31mred\u009b')).toBe('\ufffd[31mred\ufffd');
    expect(shownName('\u202etxt\u2066.exe')).toBe('txt.exe');
    expect(shownName('שלום עולם')).toBe('שלום עולם');
  });
});

const folder = temporaryFolder();
const path = (name: string) => join(folder, name);
/** Also the characters that turn the direction of text. */
const control = /(?![\n\t])[\p{Cc}\u202a-\u202e\u2066-\u2069]/u;

function written(name: string, rows: readonly object[]): string {
  writeFileSync(path(name), rows.map((row) => `${JSON.stringify(row)}\n`).join(''));
  return path(name);
}

describe('control characters of data', () => {
  it('are replaced in tables and in progress, and escaped in JSON', async () => {
    const users = ['u\u001b[31m1', 'u\u001b[31m2', 'u\u009b3\u202e\u007f'];
    const rows = users.flatMap((user, u) =>
      ['\u001b]0;a\u0007', 'b'].map((item, i) => ({ user, item, rating: u + i })),
    );
    const trained = await factorflow(
      ...argv`train ${written('ids.ndjson', rows)} ${quick} --model-dir ${path('model')}`,
    );
    expect(trained.code).toBe(0);
    const args = ['recommend', path('model'), '--users', users[0], '-n', '2'];
    const { stdout } = await factorflow(...args, '--quiet');
    expect(stdout).toContain('u\ufffd[31m1');
    expect(stdout).not.toMatch(control);
    const ofBoth = ['recommend', path('model'), '--users', `${users[0]},${users[2]}`, '-n', '1'];
    const json = (await factorflow(...ofBoth, '--json', '--quiet')).stdout;
    expect(json).not.toMatch(control);
    expect(objectOf(json).recommendations).toMatchObject([{ user: users[0] }, { user: users[2] }]);
  });

  it('leave the columns of a table in line', async () => {
    const [user, item] = ['us\u001b[31mer', 'it\u202eem'];
    const file = written('columns.ndjson', [{ [user]: 1, [item]: 2, rating: 3 }]);
    const { stdout } = await factorflow('inspect', file, '--user-col', user, '--item-col', item);
    const table = stdout.split('\n').filter((line) => /^[│┌├└]/.test(line));
    expect(table.join('\n')).toContain('us\ufffd[31mer');
    expect(new Set(table.map((line) => line.length)).size).toBe(1);
  });

  it('are replaced in errors that show a value', async () => {
    const bad = written('bad.ndjson', [{ user: 1, item: 2, rating: 'x\u001b]0;y\u0007' }]);
    await fails(3, /rating "x\ufffd\]0;y\ufffd" is not a number/, 'train', bad, '--model-dir', path('none'));
  });

  it('do not make a message of a value or of the name of a file', async () => {
    const { code, stderr } = await factorflow('inspect', path('a\u202e\nfactorflow: all is well.csv'));
    expect(code).toBe(3);
    expect(stderr).toMatch(/^factorflow: .* \(.*a\ufffd factorflow: all is well\.csv\).*\n$/);
  });

  it('are replaced in rows for a terminal, also where a batch cuts a character', () => {
    const shown = shownText();
    const bytes = Buffer.from('a\u001b]0;x\u0007,\u009b1m\u202e,\u00fc\n');
    const parts = [...bytes].map((byte) => Buffer.from(shown(Uint8Array.of(byte))).toString());
    expect(parts.join('')).toBe('a\ufffd]0;x\ufffd,\ufffd1m\ufffd,\u00fc\n');
  });
});
