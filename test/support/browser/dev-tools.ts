/**
 * Messages of the DevTools protocol through the pipes 3 and 4 of a browser: JSON texts that end in a zero
 * byte.
 */
import type { ChildProcess } from 'node:child_process';
import type { Readable, Writable } from 'node:stream';

interface Message {
  readonly id?: number;
  readonly method?: string;
  readonly result?: unknown;
  readonly error?: { readonly message: string };
  readonly params?: Entry;
}

/** The fields of events with which pages report errors. */
interface Entry {
  readonly entry?: { readonly level: string; readonly text: string };
  readonly exceptionDetails?: { readonly text: string };
  readonly type?: string;
}

interface Waiting {
  readonly resolve: (value: unknown) => void;
  readonly reject: (error: Error) => void;
}

export class DevTools {
  readonly complaints: string[] = [];
  readonly #input: Writable;
  readonly #answers = new Map<number, Waiting>();
  readonly #events = new Map<string, Waiting[]>();
  #sent = 0;
  #text = '';
  #stderr = '';

  constructor(child: ChildProcess) {
    this.#input = child.stdio[3] as Writable;
    const output = child.stdio[4] as Readable;
    output.setEncoding('utf8').on('data', (text: string) => this.#read(text));
    child.stderr?.setEncoding('utf8').on('data', (text: string) => (this.#stderr += text));
    // The pipe of a browser that has ended fails; its end is reported below.
    this.#input.on('error', () => {});
    child.once('error', (error) => this.#fail(error));
    child.once('close', () => this.#fail(new Error(`The browser has ended. ${this.#stderr.slice(-2000)}`)));
  }

  send<T>(method: string, params: object, sessionId?: string): Promise<T> {
    const id = ++this.#sent;
    return new Promise<T>((resolve, reject) => {
      this.#answers.set(id, { resolve: resolve as (value: unknown) => void, reject });
      this.#input.write(`${JSON.stringify({ id, method, params, sessionId })}\0`);
    });
  }

  /** Resolves at the next event of this name. */
  once(method: string): Promise<unknown> {
    return new Promise((resolve, reject) => {
      this.#events.set(method, [...(this.#events.get(method) ?? []), { resolve, reject }]);
    });
  }

  #read(text: string): void {
    const messages = (this.#text + text).split('\0');
    this.#text = messages.pop() ?? '';
    for (const message of messages) this.#take(JSON.parse(message) as Message);
  }

  #take({ id, method, result, error, params }: Message): void {
    if (id !== undefined) {
      const waiting = this.#answers.get(id);
      this.#answers.delete(id);
      if (error === undefined) waiting?.resolve(result);
      else waiting?.reject(new Error(error.message));
    }
    if (method === undefined) return;
    this.#note(params);
    for (const { resolve } of this.#events.get(method) ?? []) resolve(params);
    this.#events.delete(method);
  }

  #note(params: Entry | undefined): void {
    const { entry, exceptionDetails } = params ?? {};
    if (entry?.level === 'error') this.complaints.push(entry.text);
    if (exceptionDetails !== undefined) this.complaints.push(exceptionDetails.text);
  }

  #fail(error: Error): void {
    for (const { reject } of [...this.#answers.values(), ...[...this.#events.values()].flat()]) reject(error);
    this.#answers.clear();
    this.#events.clear();
  }
}
