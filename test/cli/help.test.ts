import { describe, expect, it } from 'vitest';
import { helpTexts as builtTexts } from '../../cli/generated/help.ts';
import { commandList } from '../../cli/command-list.ts';
import { quickAnswer } from '../../cli/quick-answer.ts';
import { helpTexts, helpWidths } from '../../scripts/help-texts.ts';
import { fails } from './run-cli.ts';

describe('the words help and version', () => {
  it('give the texts of the flags', async () => {
    expect(await quickAnswer(['help'])).toBe(builtTexts[''][100]);
    expect(await quickAnswer(['help', 'train'])).toBe(builtTexts.train[100]);
    expect(await quickAnswer(['help', 'help'])).toBe(builtTexts[''][100]);
    expect(await quickAnswer(['help', '--quiet'])).toBe(builtTexts[''][100]);
    expect(await quickAnswer(['version'])).toBe(await quickAnswer(['--version']));
    expect(await quickAnswer(['version'])).toMatch(/^\d+\.\d+\.\d+$/);
  });

  it('name the nearest command', async () => {
    await fails(2, /unknown command "trian"\. Did you mean train\?/, 'help', 'trian');
  });

  it('stay words elsewhere', async () => {
    expect(await quickAnswer(['inspect', 'help'])).toBeUndefined();
    expect(await quickAnswer(['inspect', 'version'])).toBeUndefined();
  });
});

describe('--help', () => {
  it('has the texts that yargs makes of the definitions (npm run build)', async () => {
    expect(Object.keys(builtTexts)).toEqual(['', ...commandList.map(({ name }) => name)]);
    expect(builtTexts).toEqual(await helpTexts());
  });

  it.each(helpWidths)('keeps to %i columns', (width) => {
    for (const [name, texts] of Object.entries(builtTexts)) {
      // Examples and the last paragraph stay on lines of their own.
      const lines = texts[width].split('\nExamples:')[0].split('\n');
      expect(
        lines.filter((line) => line.length > width),
        name,
      ).toEqual([]);
    }
  });

  it('is of the widest text that fits the terminal', async () => {
    const { columns } = process.stdout;
    const texts = builtTexts.train;
    try {
      for (const [wide, width] of [
        [200, 120],
        [120, 120],
        [119, 100],
        [undefined, 100],
        [80, 80],
        [79, 60],
        [20, 60],
      ] as const) {
        Object.defineProperty(process.stdout, 'columns', { value: wide, configurable: true });
        expect(await quickAnswer(['train', '--help'])).toBe(texts[width]);
      }
    } finally {
      Object.defineProperty(process.stdout, 'columns', { value: columns, configurable: true });
    }
  });

  it('is asked for anywhere before "--", of one command or of all', async () => {
    expect(await quickAnswer(['train', 'ratings', '--rank', 'x', '-h'])).toBe(builtTexts.train[100]);
    expect(await quickAnswer(['-h', 'train'])).toBe(builtTexts[''][100]);
    for (const other of [
      ['train', '--', '--help'],
      ['train', '--helpful'],
      ['trian', '--help'],
      ['help', 'trian'],
      [],
    ])
      expect(await quickAnswer(other)).toBeUndefined();
  });
});
