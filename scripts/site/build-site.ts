/**
 * The documentation as a site: `npm run site`. Writes pages (docs/, the folders' READMEs, the examples, and
 * an API reference from the types) into build/site/pages and the site into build/site/html, with the example
 * page in its folder films, and checks every link of it.
 */
import { execFileSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { brokenLinks } from './broken-links.ts';
import { pageText, sitePages } from './site-pages.ts';

const root = resolve(import.meta.dirname, '../..');
const tools = join(root, 'site');
const work = join(root, 'build/site');
const pagesFolder = join(work, 'pages');
const html = join(work, 'html');

installTools();
rmSync(pagesFolder, { recursive: true, force: true });
rmSync(html, { recursive: true, force: true });
writePages();
run('typedoc', '--options', join(tools, 'typedoc.json'));
run('vitepress', 'build', tools);
execFileSync(process.execPath, [join(root, 'examples/browser/make-page.ts'), join(html, 'films')]);
const broken = brokenLinks(html);
for (const line of broken) console.error(line);
if (broken.length > 0) process.exitCode = 1;
else console.log(`build/site/html: every link and anchor exists`);

/** Installs VitePress and TypeDoc as locked in site/, if that has changed since. */
function installTools(): void {
  const lock = join(tools, 'package-lock.json');
  const installed = join(tools, 'node_modules/.package-lock.json');
  if (existsSync(installed) && statSync(installed).mtimeMs >= statSync(lock).mtimeMs) return;
  execFileSync('npm', ['ci', '--ignore-scripts'], { cwd: tools, stdio: 'inherit' });
}

function writePages(): void {
  for (const [file, page] of sitePages(root)) {
    const path = join(pagesFolder, page);
    mkdirSync(dirname(path), { recursive: true });
    writeFileSync(path, pageText(root, file));
  }
  cpSync(join(root, 'docs/pictures'), join(pagesFolder, 'pictures'), { recursive: true });
}

function run(program: string, ...args: readonly string[]): void {
  execFileSync(process.execPath, [join(tools, 'node_modules/.bin', program), ...args], {
    cwd: root,
    stdio: 'inherit',
  });
}
