import { describe, expect, it } from 'vitest';
import { helpTexts as builtTexts } from '../../cli/generated/help.ts';
import { commandList } from '../../cli/command-list.ts';
import { quickAnswer } from '../../cli/quick-answer.ts';
import { helpTexts, helpWidths } from '../../scripts/help-texts.ts';
import { fails, argv, factorflow } from './run-cli.ts';
import { temporaryFolder } from '../support/temporary-folder.ts';
import { execFile, execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { completionScripts as builtScripts } from '../../cli/generated/completions.ts';
import { shownFlag } from '../../cli/options/option.ts';
import { completionScripts } from '../../scripts/completion-scripts.ts';

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

describe('completion', () => {
  const folder = temporaryFolder();
  const run = promisify(execFile);

  /** The path of a shell; undefined if it is not installed. */
  function shellAt(name: string): string | undefined {
    try {
      return execFileSync('which', [name], { encoding: 'utf8' }).trim();
    } catch {
      return undefined;
    }
  }

  describe('the scripts', () => {
    it('are those of the definitions (npm run build)', async () => {
      expect(builtScripts).toEqual(await completionScripts());
    });

    it.each(commandList)('name $name and its flags', async ({ name, load }) => {
      const { options } = await load();
      for (const script of Object.values(builtScripts)) {
        expect(script).toContain(name);
        for (const [key, option] of Object.entries(options)) {
          const { flag } = shownFlag(key, option);
          if (!option.hidden) expect(script).toMatch(new RegExp(`(--|-l |-s )${flag}\\b`));
        }
      }
    });

    it('are printed for the shell that is named, or that SHELL names', async () => {
      expect(await factorflow('completion', 'zsh')).toMatchObject({
        code: 0,
        stdout: `${builtScripts.zsh}\n`,
      });
      const shell = process.env.SHELL;
      try {
        process.env.SHELL = '/usr/bin/fish';
        expect(await factorflow('completion')).toMatchObject({ code: 0, stdout: `${builtScripts.fish}\n` });
        process.env.SHELL = '/bin/sh';
        await fails(
          2,
          /completion is for bash, zsh or fish, not for "sh"\. Name one: factorflow completion bash/,
          'completion',
        );
        delete process.env.SHELL;
        await fails(2, /completion is for bash, zsh or fish, and SHELL names none/, 'completion');
      } finally {
        if (shell !== undefined) process.env.SHELL = shell;
      }
      await fails(2, /not for "powershell"/, 'completion', 'powershell');
      expect(JSON.parse((await factorflow('completion', 'bash', '--json')).stdout)).toEqual({
        command: 'completion',
        shell: 'bash',
        script: builtScripts.bash,
      });
    });
  });

  /** A command line whose last word is to be completed, words that must be proposed, and one that must not. */
  const cases: readonly { readonly line: readonly string[]; readonly words: readonly string[] }[] = [
    { line: ['tr'], words: ['train'] },
    { line: ['train', '--algo'], words: ['--algorithm'] },
    { line: ['train', '--algorithm', ''], words: ['als', 'auto', 'sgd'] },
    { line: ['train', 'ratings', '--algorithm', 's'], words: ['sgd'] },
    { line: ['recommend', 'model', '--cod'], words: ['--codec'] },
    { line: ['completion', ''], words: ['bash', 'fish', 'zsh'] },
  ];

  describe('in a shell', () => {
    it.each([
      ...cases,
      { line: ['train', '--algorithm', '=', 's'], words: ['sgd'] },
      { line: ['train', '--model-dir', 'x'], words: [] },
      { line: ['train', '--json', 'r'], words: [] },
    ])('bash completes $line', async ({ line, words }) => {
      const bash = shellAt('bash');
      if (bash === undefined) throw new Error('this test needs bash');
      const program = `${builtScripts.bash}\nCOMP_WORDS=(factorflow ${line.map((word) => `'${word}'`).join(' ')}); COMP_CWORD=${line.length}; _factorflow; printf '%s\\n' "\${COMPREPLY[@]}"`;
      const { stdout } = await run(bash, ['--norc', '-c', program]);
      expect(
        stdout
          .split('\n')
          .filter((word) => word !== '')
          .sort(),
      ).toEqual(words);
    });

    it.for(cases)('fish completes $line', async ({ line, words }, { skip }) => {
      const fish = shellAt('fish');
      if (fish === undefined) return skip('there is no fish on this machine');
      writeFileSync(join(folder, 'factorflow.fish'), builtScripts.fish);
      const { stdout } = await run(
        fish,
        argv`--no-config -c
      ${`source ${join(folder, 'factorflow.fish')}; complete -C 'factorflow ${line.join(' ')}'`}`,
      );
      expect(
        stdout
          .split('\n')
          .filter((word) => word !== '')
          .map((word) => word.split('\t')[0])
          .sort(),
      ).toEqual(words);
    });

    it('zsh gives its completer the flags of the command', async ({ skip }) => {
      const zsh = shellAt('zsh');
      if (zsh === undefined) return skip('there is no zsh on this machine');
      const outside =
        'compdef() { : }; _describe() { print -r -- describe $2 }; _arguments() { print -rl -- "$@" }';
      const { stdout } = await run(zsh, [
        '-f',
        '-c',
        `${outside}; ${builtScripts.zsh}\nwords=(factorflow train ratings --al) CURRENT=4 _factorflow; words=(factorflow tr) CURRENT=2 _factorflow`,
      ]);
      expect(stdout).toMatch(
        /^-S\n(.|\n)*\n--algorithm=\[.*\]:algorithm:\(als sgd auto\)\n(.|\n)*\n\*:file:_files\ndescribe commands\n/,
      );
      expect(stdout).not.toContain('--codec');
    });
  });
});
