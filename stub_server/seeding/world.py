"""A scenario poured into a sandbox."""
from pathlib import Path
from ..kernel.ids import named_uuid
from ..kernel.record import Body, Change
from ..kernel.clock import iso
from ..sandbox import Sandbox
from ..store.memory import Merchant, Store

class Seeding:
    def __init__(self, fixtures: Path, blanks: dict[str, Body]) -> None:
        self.blanks = blanks
    def fill(self, sandbox: Sandbox, secret: bytes) -> None:
        m = Merchant(named_uuid("merchant","default"), named_uuid("user","default"), "Academia Viva", "São Paulo", iso(sandbox.clock.now-86400000*400))
        sandbox.home = m.id
        store = sandbox.stores[m.id] = Store(m, sandbox.rules.checks)
        for i in range(300):
            ident = sandbox.ids.uuid()
            doc = f"P{i:07d}"
            t = iso(sandbox.clock.now - 1000*i)
            store.write(Change().create("customers", ident, {"id":ident,"type":"individual","name":f"Ana Souza {i}","email":f"ana{i}@example.com","document":doc,"document_type":"passport","phones":{"mobile_phone":{"country_code":"55","area_code":"11","number":"999999999"}},"address":{"line_1":"1374, Avenida Paulista, Bela Vista","line_2":"Apto 82","zip_code":"01310100","city":"São Paulo","state":"SP","country":"BR"},"metadata":{},"createdAt":t,"updatedAt":t}, {}))
