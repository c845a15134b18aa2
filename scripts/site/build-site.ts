/**
 * The documentation as a site: `npm run site`. Writes pages (docs/, the folders' READMEs, the examples, and
 * an API reference from the types) into build/site/pages and the site into build/site/html, with the example
 * page in its folder films, and checks every link of it.
 */

import { execFileSync } from 'node:child_process';
import {
  cpSync,
  existsSync,
  globSync,
  mkdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, posix, resolve } from 'node:path';
import { parseHTML } from 'linkedom';
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

/** Links of a built site to pages, files or anchors of it that do not exist, each with its page. */
function brokenLinks(site: string): string[] {
  const files = new Set(globSync('**/*.*', { cwd: site }));
  const documents = new Map(
    [...files]
      .filter((file) => file.endsWith('.html'))
      .map((file) => [file, parseHTML(readFileSync(join(site, file), 'utf8')).document]),
  );
  const anchors = new Map(
    [...documents].map(([file, document]) => [
      file,
      new Set([...document.querySelectorAll('[id]')].map(({ id }) => id)),
    ]),
  );
  return [...documents].flatMap(([file, document]) =>
    [...document.querySelectorAll('a[href], img[src]')].flatMap((element) => {
      const href = element.getAttribute('href') ?? element.getAttribute('src') ?? '';
      if (/^[a-z]+:/.test(href)) return [];
      const [path, anchor] = decodeURI(href).split('#');
      const target = path === '' ? file : fileOf(path, file, files);
      if (target === undefined) return [`${file}: ${href} does not exist`];
      if (anchor && !anchors.get(target)?.has(anchor)) return [`${file}: ${href} has no such anchor`];
      return [];
    }),
  );
}

/** The file that a server of plain files, or one that adds .html, sends for an address. */
function fileOf(path: string, from: string, files: ReadonlySet<string>): string | undefined {
  const address = path.startsWith('/') ? path.slice(1) : posix.join(dirname(from), path);
  return [address, `${address}.html`, posix.join(address, 'index.html')].find((file) => files.has(file));
}
