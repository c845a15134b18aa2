/** The page that docs/browser.md makes from nothing: its commands and files as they are written there. */
import { execFileSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join, resolve } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Chromium, prepareChromium } from '../support/browser/chromium.ts';
import { PageServer } from './page-server.ts';

const refusal = prepareChromium();
if (refusal !== undefined) console.log(`not tested: the page of docs/browser.md. ${refusal}`);
const root = resolve(import.meta.dirname, '../..');
const [, section] = readFileSync(join(root, 'docs/browser.md'), 'utf8').split('## From nothing to a page\n');
const part = section.split(/^## /m)[0];
const blockOf = (language: string) =>
  new RegExp(`^\`\`\`${language}\n(.*?)^\`\`\``, 'ms').exec(part)?.[1] ?? '';

describe.skipIf(refusal !== undefined)('the page of docs/browser.md', () => {
  const folder = mkdtempSync(join(tmpdir(), 'factorflow-documented-'));
  let [server, browser]: [PageServer?, Chromium?] = [];

  beforeAll(async () => {
    mkdirSync(join(folder, 'node_modules'));
    symlinkSync(root, join(folder, 'node_modules/factorflow'));
    writeFileSync(join(folder, 'package.json'), '{ "type": "module" }\n');
    const lines = [...part.matchAll(/^ {4}((?:npx factorflow|rm|cp) .*)$/gm)].map(([, line]) =>
      line.replace('npx factorflow', `'${process.execPath}' '${join(root, 'dist/programs/cli/main.js')}'`),
    );
    expect(lines.length).toBe(3);
    for (const line of lines) execFileSync('sh', ['-c', line], { cwd: folder, stdio: 'pipe' });
    writeFileSync(join(folder, 'names.js'), blockOf('js'));
    execFileSync(process.execPath, ['names.js'], { cwd: folder });
    writeFileSync(join(folder, 'page/index.html'), blockOf('html'));
    server = await PageServer.open(join(folder, 'page'));
    browser = await Chromium.open();
    await browser.show(`${server.url}/`, { width: 360, height: 740 });
  });
  afterAll(async () => {
    await browser?.close();
    await server?.close();
    rmSync(folder, { recursive: true });
  });

  it('shows ten titles', async () => {
    const items = `[...document.querySelectorAll('#films li')].map((one) => one.textContent)`;
    const shown = await browser?.value<string[]>(
      `new Promise((done) => { const look = () => ${items}.length === 10 ? done(${items}) : setTimeout(look, 20); look(); })`,
    );
    expect(new Set(shown).size).toBe(10);
    expect(shown?.filter((title) => !/ \(\d{4}\)$/.test(title))).toEqual([]);
  });
});
