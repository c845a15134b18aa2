import { mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { tmpdir } from 'node:os';
import { extname, join } from 'node:path';
import { afterAll, beforeAll, beforeEach } from 'vitest';
import type { Session } from '../../index.ts';
import { cpuSession } from '../support/cpu-session.ts';
import { sendRange } from '../support/send-range.ts';

const types: Readonly<Record<string, string>> = {
  '.html': 'text/html; charset=utf-8',
  '.js': 'text/javascript',
  '.json': 'application/json',
  '.css': 'text/css',
  '.svg': 'image/svg+xml',
  '.webmanifest': 'application/manifest+json',
};

const isolation = {
  'Cross-Origin-Opener-Policy': 'same-origin',
  'Cross-Origin-Embedder-Policy': 'require-corp',
};

/** A request for a file that exists. */
export interface Asked {
  readonly path: string;
  readonly content: Buffer;
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Number of requests for this file before. */
  readonly before: number;
}

/**
 * A plain file server for pages, as most hosts run one: it sends neither COOP nor COEP, so pages are not
 * cross-origin isolated unless `isolated` is true. `answer` may answer a request itself; it then
 * returns true.
 */
export class PageServer {
  readonly #folder: string;
  readonly #server: Server;
  /** Bytes sent, by path. */
  readonly sent = new Map<string, number>();
  /** Requests for files that do not exist. */
  readonly missed: string[] = [];
  /** Number of requests, by path. */
  readonly requests = new Map<string, number>();
  answer: (asked: Asked) => boolean = () => false;
  isolated = false;

  private constructor(folder: string) {
    this.#folder = folder;
    this.#server = createServer((request, response) => this.#respond(request, response));
  }

  static async open(folder: string): Promise<PageServer> {
    const server = new PageServer(folder);
    await new Promise<void>((resolve) => server.#server.listen(0, '127.0.0.1', resolve));
    return server;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.#server.address() as AddressInfo).port}`;
  }

  reset(): void {
    this.answer = () => false;
    this.sent.clear();
    this.missed.length = 0;
    this.requests.clear();
  }

  async close(): Promise<void> {
    this.#server.closeAllConnections();
    await new Promise((resolve) => this.#server.close(resolve));
  }

  #respond(request: IncomingMessage, response: ServerResponse): void {
    const path = decodeURIComponent(new URL(request.url ?? '/', 'http://host').pathname);
    const file = join(this.#folder, path.endsWith('/') ? `${path}index.html` : path);
    const found = statSync(file, { throwIfNoEntry: false });
    if (found?.isFile() !== true) {
      this.missed.push(path);
      return void response.writeHead(404).end();
    }
    const content = readFileSync(file);
    const before = this.requests.get(path) ?? 0;
    this.requests.set(path, before + 1);
    if (this.answer({ path, content, request, response, before })) return;
    const headers = {
      'Content-Type': types[extname(file)] ?? 'application/octet-stream',
      ETag: `"${found.size}-${found.mtimeMs}"`,
      'Cache-Control': 'no-cache',
      ...(this.isolated && isolation),
    };
    const bytes = sendRange(request, response, content, headers);
    this.sent.set(path, (this.sent.get(path) ?? 0) + bytes);
  }
}

/** A folder, a session on the CPU and a server of the folder, which a test file has from its hooks on. */
export interface Served {
  readonly folder: string;
  session: Session;
  server: PageServer;
}

export function served(workers = 1): Served {
  const given = { folder: mkdtempSync(join(tmpdir(), 'factorflow-page-')) } as Served;
  beforeAll(async () => {
    given.session = await cpuSession({ workers });
    given.server = await PageServer.open(given.folder);
  });
  beforeEach(() => given.server.reset());
  afterAll(async () => {
    await given.server.close();
    rmSync(given.folder, { recursive: true });
  });
  return given;
}
