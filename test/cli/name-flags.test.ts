import { describe, expect, it } from 'vitest';
import { trainOptions } from '../../cli/options/training/training-options.ts';
import { nameFlags } from '../../cli/report/name-flags.ts';
import { reportError } from '../../cli/report/report-error.ts';
import { DataError, UsageError } from '../../engine/errors.ts';

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
