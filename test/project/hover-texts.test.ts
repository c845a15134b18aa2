/**
 * Texts that an editor shows over options: each has a meaning and its default, and internal members are not
 * public.
 */
import { parse } from '@babel/parser';
import { readFileSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { alsTable } from '../../operators/als/params.ts';
import type { Param } from '../../operators/params/param.ts';
import { sgdTable } from '../../operators/sgd/params.ts';

const root = resolve(import.meta.dirname, '../..');

interface Member {
  readonly name: string;
  readonly optional: boolean;
  readonly text: string;
}

/** The members of an interface that are public, with their comments on one line. */
function membersOf(file: string, name: string): Member[] {
  const { body } = parse(readFileSync(join(root, file), 'utf8'), {
    sourceType: 'module',
    plugins: ['typescript'],
  }).program;
  const declared = body
    .map((one) => (one.type === 'ExportNamedDeclaration' ? one.declaration : one))
    .find((one) => one?.type === 'TSInterfaceDeclaration' && one.id.name === name);
  if (declared?.type !== 'TSInterfaceDeclaration') throw new Error(`${file} declares no interface ${name}`);
  const members = declared.body.body.map((member): Member => {
    if (member.type !== 'TSPropertySignature' || member.key.type !== 'Identifier')
      throw new Error(`${name} of ${file} has a member that is no property`);
    const text = (member.leadingComments ?? [])
      .map(({ value }) => value.replaceAll(/\s*\n\s*(\*\s?)?/g, ' '))
      .join(' ');
    return { name: member.key.name, optional: member.optional === true, text };
  });
  return members.filter(({ text }) => !text.includes('@internal'));
}

const common = membersOf('operators/params/common.ts', 'CommonParams');

/** A default as it is written: 10, true, [3, 5], 'auto'. */
function written(fallback: unknown): string {
  if (Array.isArray(fallback)) return `[${fallback.join(', ')}]`;
  return typeof fallback === 'string' ? `'${fallback}'` : String(fallback);
}

describe.each([
  ['ALS', alsTable.params, membersOf('operators/als/als-params.ts', 'AlsParams')],
  ['SGD', sgdTable.params, membersOf('operators/sgd/params.ts', 'SgdParams')],
] as const)('every parameter of %s', (_, params, own) => {
  it.each(Object.entries(params as Readonly<Record<string, Param>>))(
    '%s states its meaning and its default',
    (name, { fallback }) => {
      const text = [...own, ...common].find((member) => member.name === name)?.text ?? '';
      const [meaning, , stated] = /^(.*?)\b(default:?) (.*)$/i.exec(text)?.slice(1) ?? [];
      expect(meaning?.length).toBeGreaterThan(20);
      if (fallback !== undefined) expect(stated).toContain(written(fallback));
    },
  );
});

describe.each([
  ['api/rating-input.ts', 'RatingOptions'],
  ['api/fit-options.ts', 'FitOptions'],
  ['api/run-session.ts', 'RunOptions'],
  ['api/session-options.ts', 'SessionOptions'],
  ['api/training/checkpoints/checkpoint-options.ts', 'CheckpointOptions'],
  ['api/validation/ranking-options.ts', 'RankUsersOption'],
  ['api/validation/cross-validator.ts', 'CrossValidatorOptions'],
  ['api/validation/tuning/tuning-options.ts', 'TrainValidationSplitOptions'],
  ['api/validation/tuning/tuning-options.ts', 'TuneOptions'],
])('%s: every option of %s', (file, name) => {
  const members = membersOf(file, name).filter(({ optional }) => optional);

  it('states its meaning and its default', () => {
    expect(members.length).toBeGreaterThan(0);
    expect(members.filter(({ text }) => !/\w.*\bdefault\b/i.test(text)).map((member) => member.name)).toEqual(
      [],
    );
  });
});

describe('the published types', () => {
  it('have no internal member, and are there', () => {
    const types = readFileSync(join(root, 'dist/types/index.d.ts'), 'utf8');
    expect(types).toContain('memoryBudget');
    expect(types).not.toContain('@internal');
    // Members that the command and tests use, and nothing else.
    expect(readFileSync(join(root, 'dist/api/session-options.d.ts'), 'utf8')).toContain('fakeDevices');
    expect(types).not.toContain('fakeDevices');
  });
});
