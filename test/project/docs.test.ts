/**
 * Checks of the Markdown files: generated pages are current, links have targets, command lines and imports
 * are valid.
 */
import { existsSync, globSync, readFileSync } from 'node:fs';
import { dirname, join, relative, resolve } from 'node:path';
import { describe, expect, it } from 'vitest';
import { parseArguments } from '../../cli/parse-arguments.ts';
import { exportedNames } from '../../scripts/docs/api-page.ts';
import { generatedPages } from '../../scripts/write-docs.ts';

const root = resolve(import.meta.dirname, '../..');
const pages = globSync('{*,{docs,bench,examples,engine,gpu,operators}/**/*}.md', { cwd: root }).sort();
const textOf = (page: string) => readFileSync(join(root, page), 'utf8');

describe('the generated pages', async () => {
  const generated = Object.entries(await generatedPages(root));

  it.each(generated)('%s is current (npm run docs)', (path, content) => {
    expect(textOf(path) === content, `${path} is stale: run npm run docs`).toBe(true);
  });

  it('tell of every command and every exported name', () => {
    const [api, cli] = [textOf('docs/reference/api.md'), textOf('docs/reference/cli.md')];
    for (const command of ['train', 'evaluate', 'predict', 'recommend', 'plan'])
      expect(cli).toContain(`\n## ${command}\n`);
    for (const name of exportedNames(root)) expect(api).toContain(`\n### ${name}\n`);
  });
});

describe('links', () => {
  it.each(pages)('of %s lead to files and headings', (page) => {
    const links = [...withoutCode(textOf(page)).matchAll(/\]\((?![a-z]+:)([^)\s]+)\)/g)].map(
      (match) => match[1],
    );
    const broken = links.filter((link) => {
      const [path, anchor] = link.split('#');
      const target = path === '' ? page : relative(root, resolve(root, dirname(page), path));
      if (target.startsWith('..') || !existsSync(join(root, target))) return true;
      return anchor !== undefined && !headings(textOf(target)).includes(anchor);
    });
    expect(broken).toEqual([]);
  });
});

describe.each([
  ['docs/guarantees.md', '### The tests that hold them', 10],
  ['SECURITY.md', '## What is promised', 7],
] as const)('the promises of %s', (page, heading, most) => {
  const [, part] = textOf(page).split(`${heading}\n`);
  const rows = part.split(/^#/m)[0].match(/^\| (?!about |guarantee |-).*\|$/gm) ?? [];

  it('each name the tests that hold them', () => {
    expect(rows.length).toBeGreaterThanOrEqual(most);
    expect(rows.filter((row) => !/\| `test\/[^|]*\|$/.test(row))).toEqual([]);
  });

  it('name tests that are in the repository', () => {
    const named = rows.flatMap((row) => [...row.matchAll(/`(test\/[^`]+)`/g)].map((match) => match[1]));
    expect(named.filter((path) => !existsSync(join(root, path)))).toEqual([]);
  });
});

it('files that the pages about the code name are in the repository', () => {
  const sources = globSync('{api,cli,connectors,cpu,engine,gpu,operators,scripts,test}/**/*.{ts,wgsl}', {
    cwd: root,
  });
  const about = pages.filter((page) => page === 'ARCHITECTURE.md' || /^(engine|gpu|operators)\//.test(page));
  const missing = about.flatMap((page) =>
    [...textOf(page).matchAll(/(?<![\w.</-])[\w-]+(?:[/.][\w-]+)*\.(?:ts|wgsl)(?![\w.])/g)]
      .map(([name]) => name)
      .filter((name) => !existsSync(join(root, name)) && !sources.some((path) => path.endsWith(`/${name}`))),
  );
  expect(about.length).toBe(5);
  expect(missing).toEqual([]);
});

describe('command lines', () => {
  const lines = pages.flatMap((page) => commandLines(textOf(page)).map((line) => [page, line] as const));

  it('are found', () => {
    expect(lines.length).toBeGreaterThan(30);
    expect(
      commandLines(
        '    $ factorflow train "a b" --rank 8   # why\n\n`factorflow doctor`, `factorflow <command>`',
      ),
    ).toEqual(['factorflow train "a b" --rank 8', 'factorflow doctor']);
  });

  it.each(lines)('%s: %s', async (_, line) => {
    const request = await parseArguments(words(line).slice(1));
    if (request.kind === 'text') return;
    const { config: _config, ...flags } = request.raw.flags;
    request.command.prepare({ ...request.raw, flags });
  });

  it('with a flag that is not there would be found out', async () => {
    await expect(
      parseArguments(words('factorflow train ratings/ --model-dir m --rnak 8').slice(1)),
    ).rejects.toThrow('unknown flag --rnak');
  });
});

describe('TypeScript on the pages', () => {
  const exported = exportedNames(root);

  it.each(pages)('of %s imports names that there are', (page) => {
    const imports = [...textOf(page).matchAll(/import (?:type )?\{([^}]*)\} from 'factorflow'/g)];
    const names = imports.flatMap((match) =>
      match[1].split(',').map((name) => name.replace(/\btype\b/, '').trim()),
    );
    expect(names.filter((name) => !exported.includes(name))).toEqual([]);
  });
});

function withoutCode(text: string): string {
  return text.replaceAll(/^```.*?^```/gms, '').replaceAll(/`[^`\n]*`/g, '');
}

/** The anchors that GitHub gives headings. */
function headings(text: string): string[] {
  return [...text.matchAll(/^#+ (.*)$/gm)].map((match) =>
    match[1]
      .toLowerCase()
      .replaceAll(/[^\p{L}\p{N}\s_-]/gu, '')
      .replaceAll(' ', '-'),
  );
}

/** Lines of code blocks, and code spans, that start with the program's name and leave nothing open. */
function commandLines(text: string): string[] {
  const blocks = [...text.matchAll(/^ *(?:\$ )?(?:npx )?(factorflow .*)$/gm)].map((match) =>
    match[1].replace(/\s+(#|>).*$/, '').trim(),
  );
  const spans = [...text.matchAll(/`(factorflow [a-z][^`\n]*)`/g)]
    .map((match) => match[1])
    .filter((line) => !/[<[…]/.test(line));
  return [...blocks, ...spans];
}

/** As a shell takes a line apart: quotes keep words together. */
function words(line: string): string[] {
  return [...line.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map((match) => match[1] ?? match[2] ?? match[3]);
}
