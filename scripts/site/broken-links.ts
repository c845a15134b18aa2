import { globSync, readFileSync } from 'node:fs';
import { dirname, join, posix } from 'node:path';
import { parseHTML } from 'linkedom';

/** Links of a built site to pages, files or anchors of it that do not exist, each with its page. */
export function brokenLinks(site: string): string[] {
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
