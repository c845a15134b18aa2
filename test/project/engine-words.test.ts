/** Only the steps of a plan control devices, and the engine does not know what is computed. */
import { globSync, readFileSync } from 'node:fs';
import { relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';

const root = resolve(import.meta.dirname, '../..');

interface Line {
  readonly file: string;
  readonly text: string;
}

function linesOf(patterns: readonly string[]): Line[] {
  return patterns
    .flatMap((pattern) => globSync(pattern, { cwd: root }))
    .flatMap((file) =>
      readFileSync(resolve(root, file), 'utf8')
        .split('\n')
        .map((text) => ({ file: relative(root, resolve(root, file)), text })),
    );
}

/** Files whose calls of these names are a device's, each with its reason. */
const callsDevices: Readonly<Record<string, string>> = {
  'api/devices/checked-card.ts': 'the doctor looks at the kernels of a device, not at a plan',
};

/** Objects with methods of these names that are not devices. */
const noDevices = [
  'command',
  'this',
  'this.#slot',
  'pool',
  'thread',
  'this.#piscina',
  'this.#pool',
  'steps',
  'this.steps',
  'expansion.list',
  'this.list',
];

describe('a device', () => {
  it('is told what to do by engine/run alone', () => {
    const verb = /(?<receiver>(?:new )?[\w#.]+(?:\([^()]*\))?)\.(?:put|allocate|run|fetch|release)\(/g;
    const calls = linesOf([
      'api/**/*.ts',
      'cli/**/*.ts',
      'connectors/**/*.ts',
      'synthetic/**/*.ts',
      'operators/**/*.ts',
      'engine/**/*.ts',
    ])
      .filter(({ file, text }) => !file.startsWith('engine/run/') && !/^\s*(\*|\/\/|\/\*)/.test(text))
      .flatMap(({ file, text }) =>
        [...text.matchAll(verb)].map(({ groups }) => ({ file, receiver: groups?.receiver ?? '' })),
      )
      .filter(({ receiver }) => !noDevices.includes(receiver));
    expect(calls.filter(({ file }) => callsDevices[file] === undefined)).toEqual([]);
    expect([...new Set(calls.map(({ file }) => file))].sort()).toEqual(Object.keys(callsDevices).sort());
  });
});

/** Lines of the engine that name what it should not know, each with its reason. */
const known: readonly { readonly file: string; readonly names: RegExp; readonly because: string }[] = [
  {
    file: 'engine/events.ts',
    names: /trainRmse|testRmse/,
    because: 'the event of an iteration is public as it is; its numbers could be measures by name',
  },
];

describe('the engine', () => {
  it('does not know ratings, their errors, ranks or kernels', () => {
    const found = linesOf(['engine/**/*.ts']).filter(({ text }) =>
      /\bratings?\b|rmse|\brank\b|'update'/i.test(text),
    );
    const unknown = found.filter(
      ({ file, text }) => !known.some((one) => one.file === file && one.names.test(text)),
    );
    expect(unknown).toEqual([]);
    for (const one of known)
      expect(found.some(({ file, text }) => one.file === file && one.names.test(text))).toBe(true);
  });
});
