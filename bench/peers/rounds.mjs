// rounds.mjs: drives a peer. Each line of standard input is a number of jobs to push and then
// complete; the answer is a line {"jobs": N, "seconds": S}, the time of the completions only.
// Between rounds a peer is idle: ours is measured then.
import { createRequire } from 'node:module'
import { createInterface } from 'node:readline'

export const payload = { text: 'x'.repeat(89) } // 100 bytes as JSON

// Calls back with the size of each push, since no peer accepts all jobs at once.
export async function inChunks(n, push) {
  for (let done = 0; done < n; done += 1000) await push(Math.min(1000, n - done))
}

// The clock starts when the first job starts (the first fetch is not counted) and stops with the
// last one.
export class Watch {
  constructor(n) {
    this.left = n
    this.all = new Promise((resolve) => {
      this.resolve = resolve
    })
  }

  start() {
    this.startedAt ??= performance.now()
  }

  done(n = 1) {
    this.left -= n
    if (this.left > 0) return
    this.seconds = (performance.now() - this.startedAt) / 1000
    this.resolve()
  }
}

// Prints the version of the package, then answers rounds until end of input; round(n) returns the
// seconds.
export async function answerRounds(name, round) {
  const { version } = createRequire(import.meta.url)(`./node_modules/${name}/package.json`)
  console.log(JSON.stringify({ peer: `${name} ${version}`, node: process.version }))
  for await (const line of createInterface({ input: process.stdin })) {
    const jobs = Number(line)
    console.log(JSON.stringify({ jobs, seconds: await round(jobs) }))
  }
  process.exit() // with whatever is open: the databases are thrown away
}
