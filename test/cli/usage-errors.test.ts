import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { describe, expect, it } from 'vitest';
import { refusals, argv, fails, objectOf, ratings, start } from './run-cli.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { paramOptions } from '../../cli/options/training/param-options.ts';

const folder = temporaryFolder();
let configs = 0;
const train = ['train', ratings, '--model-dir', join(folder, 'model')];

describe.concurrent('usage errors exit with 2 and name flag and value', () => {
  it.each(refusals`
    --rank abc | --rank must be a whole number from 1 to 4,096, got "abc"
    --rank 0 | --rank .* got "0"
    --rank 1.5 | --rank .* got "1.5"
    --rank ${''} | --rank .* got ""
    --rank 2 --rank 3 | --rank takes one value, got "2" and "3"
    --rank | --rank needs a value
    --reg-param -1 | --reg-param must be auto or a number of 0 or more, got "-1"
    --bias-damping 3 --bias-damping x | --bias-damping must be a number of 0 or more, or two with a comma between
    --bias-damping 1,2,3 | --bias-damping must be a number of 0 or more, or two with a comma between
    --memory-budget lots | --memory-budget must be a size
    --solver lu | --solver must be auto, cholesky or cg, got "lu"
    --algorithm svd | --algorithm must be als, sgd or auto, got "svd"
    --device gpu:0,0 | --device gpu:0,0 names gpu:0 twice
    --device tpu | --device must be auto, cpu, gpu or GPUs by number such as gpu:0,1, got "tpu"
    --fake-devices 0 | --fake-devices must be a whole number from 1 to 16, got "0"
    --device cpu --precision int8 | --precision int8 cannot be used with --device cpu
    --algorithm sgd --precision int8 | --precision int8 cannot be used for SGD
    --implicit --precision int8 | --precision int8 cannot be used with --implicit
    --device cpu --precision f16 | --precision f16 cannot be used with --device cpu
    --device cpu --kernel update-tensor | --kernel cannot be used with --device cpu
    --device cpu --device-memory 8GiB | --device-memory cannot be used with --device cpu
    --device-memory much | --device-memory must be a size such as 4GiB
    --test-fraction 1 | --test-fraction must be a number above 0 and below 1
    --test-fraction 0.1 --test ${ratings} | --test and --test-fraction exclude each other
    --early-stop 2 | --early-stop needs held-out ratings
    --solver cholesky --cg-steps 3 | --cg-steps has no effect
    --nonnegative --solver cg | nonnegative
    --nonnegative --cg-steps 3 | --cg-steps
    --timestamp-col timestamp | --timestamp-col acts only with --half-life, --on-duplicates last or --test-by time
    --test-by time | --test-by acts only with --test-fraction or --test-leave-out
    --test-fraction 0.1 --test-leave-out 2 | --test-fraction and --test-leave-out exclude each other
    --rnak 3 | unknown flag --rnak of train. Did you mean --rank\?
    --blocks 40 | unknown flag --blocks
    --modelDir x | unknown flag --modelDir
    --get-yargs-completions | unknown flag --get-yargs-completions of train
    --toString x | unknown flag --toString of train
  `)('train %j', async (flags, pattern) => {
    await fails(2, pattern, ...train, ...flags);
  });

  it.each(refusals`
    train ${ratings} | --model-dir is needed
    train --model-dir x | train needs <ratings\.\.>
    trian ${ratings} | unknown command "trian". Did you mean train\?
    doctor extra | unknown argument "extra"
    generate --preset nope --output ${join(folder, 'g')} | --preset must be movielens20m
    generate --preset movielens20m --scale 0 --output ${join(folder, 'g')} | --scale
    plan --users 5 | all of --users, --items and --ratings
    plan ${ratings} --users 5 | exclude each other
    plan --users 5 --items 5 --ratings 5 --analyze | --analyze acts only with paths
    recommend model | --output is needed
    recommend model --users 1,,2 | --users has an empty part: "1,,2"
    recommend model --users "a,b | --users has a quote in the wrong place
    recommend model --users 1 --users 2, | --users has an empty part: "2,"
    recommend model --users 1 --decimal-comma | --decimal-comma acts only with --exclude
    recommend model --users 1 --to csv | --to acts only with --output
    recommend model --users 1 2 | unknown argument "2" of recommend\. --users takes one text with commas between its parts: --users 1,2
    similar model --item=7 8 | commas between its parts: --item 7,8
    train ${ratings} --model x | unknown flag --model of train\. Did you mean --model-dir\?
    train ${ratings} --lambda 1 | Did you mean --reg-param\?
    recommend model --users 1 --codec zstd | --codec acts only with --output
    tune ratings.csv --model-dir no/model --trials-file no/a� | the name is not UTF-8, and would be written as another name \(no\/a\uFFFD\)
    recommend model --users 1 --escape-formulas | --escape-formulas acts only with --output
    recommend model --users 1 --items 2 | either --users or --items
    recommend model --items 1 --deny 2 | --deny acts only with --users
    recommend model --output x --unknown-users popular | --unknown-users acts only with ids of users
  `)('%j', async (args, pattern) => {
    await fails(2, pattern, ...args);
  });

  it.each<[string, RegExp]>([
    ['{"rank": 4, "lerning": 1}', /unknown key "lerning" in the configuration/],
    ['{"rnak": 4}', /Did you mean "rank"\?/],
    ['{"config": "other.json"}', /unknown key "config" in .*The keys are: .*"maxIter", "regParam"/],
    ['{"rank": "four"}', /"rank" in .* must be a whole number/],
    ['{"rank": [4, 5]}', /takes one value/],
    ['{"maxIter": 1, "max-iter": 2}', /is given twice/],
    ['{"json": "yes"}', /must be true or false/],
    ['[1]', /not a JSON object/],
    ['{"rank": 4,}', /not JSON/],
  ])('the configuration %s', async (content, pattern) => {
    const config = join(folder, `config-${configs++}.json`);
    writeFileSync(config, content);
    await fails(2, pattern, ...train, '-c', config);
  });

  it('a missing configuration', async () => {
    await fails(
      2,
      /no such file or folder \(.*missing\.json\)/,
      ...argv`${train} -c ${join(folder, 'missing.json')}`,
    );
  });

  it('an output that exists, before anything is read', async () => {
    const model = join(folder, 'exists');
    mkdirSync(join(model, 'userFactors'), { recursive: true });
    for (const [args, pattern] of refusals`
      train ${join(folder, 'not-there.parquet')} --model-dir ${model} | the output exists already .*pass --force to replace it
      predict model pairs --output ${model} | the output exists
      recommend model --output ${model} | the output exists
      generate --preset movielens20m --output ${model} | the output exists
    `)
      await fails(2, pattern, ...args);
  });

  it('nothing at all, or a flag before the command', async () => {
    const nothing = await start([]).outcome;
    expect(nothing).toMatchObject({
      code: 2,
      stdout: '',
      stderr: expect.stringContaining('no command is given'),
    });
    await fails(2, /unknown flag --rank. A command comes first/, '--rank', '3');
  });
});

describe.concurrent('with --json', () => {
  it('a failure is one object on stdout as well', async () => {
    const { code, stdout, stderr } = await start([...train, '--rank', '0', '--json']).outcome;
    expect(code).toBe(2);
    const { command, error } = objectOf(stdout) as {
      command: string;
      error: { message: string; exitCode: number };
    };
    expect(command).toBe('train');
    expect(error.exitCode).toBe(2);
    expect(stderr).toBe(`factorflow: ${error.message}\n`);
  });
});

describe.concurrent('--help and --version', () => {
  it('come on stdout with exit code 0', async () => {
    const version = await start(['--version']).outcome;
    expect(version).toMatchObject({
      code: 0,
      stderr: '',
      stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/),
    });
    const help = await start(['--help']).outcome;
    expect(help).toMatchObject({ code: 0, stderr: '' });
    for (const command of argv`train evaluate predict recommend similar inspect plan generate doctor`)
      expect(help.stdout).toContain(`factorflow ${command}`);
    const train = await start(['train', '--help']).outcome;
    expect(train).toMatchObject({ code: 0, stderr: '' });
    for (const part of [
      'Model:',
      '--reg-param',
      '[default: 0.02; without biases 0.1; implicit: 0.3 α,',
      'Held-out ratings:',
      'Examples:',
    ])
      expect(train.stdout).toContain(part);
    expect(train.stdout).not.toContain('--fake-devices');
  });

  it.for([
    { line: ['train', '--help'], most: 11 },
    { line: ['--version'], most: 11 },
    { line: ['trian'], most: 40 },
    { line: ['train', ratings, '--rank', '0'], most: 110 },
  ])(
    '$line loads few modules, and no files of yargs, Arrow, Parquet or WebGPU',
    async ({ line, most }, { skip }) => {
      const hooks =
        "import * as m from 'node:module'; m.registerHooks?.({ load(url, context, next) { process.stderr.write(url + '\\n'); return next(url, context); } })";
      const { outcome } = start(line, {
        nodeArgs: ['--import', `data:text/javascript,${encodeURIComponent(hooks)}`],
      });
      const { stderr } = await outcome;
      if (stderr === '') return skip('this Node has no module hooks');
      const loaded = stderr.split('\n').filter((url) => /^(file|node):/.test(url));
      expect(loaded).toContainEqual(expect.stringMatching(/chunks\/quick-answer-/));
      expect(loaded.length).toBeLessThanOrEqual(most);
      for (const heavy of ['yargs/', 'apache-arrow', 'parquet-wasm', 'webgpu/', 'piscina'])
        expect(stderr).not.toContain(heavy);
    },
  );
});

it.each([
  ['3,5', [3, 5]],
  [
    ['3', '5'],
    [3, 5],
  ],
  [
    [2, 4],
    [2, 4],
  ],
  [[5], 5],
  ['4', 4],
])('two numbers have a comma between, repeat the flag or are an array: %j', (given, value) => {
  expect(paramOptions.biasDamping.read(given, '--bias-damping')).toEqual(value);
});
