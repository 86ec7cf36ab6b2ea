// The search on pages that are opened from files: browsers start no worker from there, so that an invisible frame runs
// its script. The theme uses `Worker` as on pages of a server.
if (location.protocol === "file:") {
  window.Worker = class extends EventTarget {
    constructor(url) {
      super()
      this.frame = document.createElement("iframe")
      this.frame.hidden = true
      document.body.append(this.frame)
      const inside = this.frame.contentWindow
      addEventListener("message", (event) => {
        if (event.source === inside) this.dispatchEvent(new MessageEvent("message", { data: event.data }))
      })
      // What the script of a worker calls.
      const post = "postMessage = (data) => parent.postMessage(data, '*')"
      const load =
        "importScripts = async (...urls) => { for (const url of urls) await new Promise((resolve) => {" +
        "const script = document.createElement('script'); script.src = url; script.onload = resolve;" +
        "document.body.append(script) }) }"
      inside.document.open()
      inside.document.write(`<body><script>${post};${load}</` + `script><script src="${url}"></` + "script></body>")
      inside.document.close()
      // Opening the document has removed what listened before.
      this.loaded = new Promise((resolve) => inside.addEventListener("load", resolve))
    }

    async postMessage(data) {
      await this.loaded
      this.frame.contentWindow.dispatchEvent(new MessageEvent("message", { data: structuredClone(data) }))
    }

    terminate() {
      this.frame.remove()
    }
  }
}
